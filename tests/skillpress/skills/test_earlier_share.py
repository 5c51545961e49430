"""What the buffer adds to a step's corpus."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.skills.buffer import Success
from skillpress.skills.decayed import Decayed
from skillpress.skills.each_task_once import EachTaskOnce
from skillpress.skills.earlier_share import earlier_share
from skillpress.skills.step_corpus import Algorithm1, BatchAccepts, BufferAndBatch, SuccessCorpus


def successes(count: int, step: int = 0) -> list[Success]:
    return [Success(("A", "B"), f"task {step}-{number}") for number in range(count)]


def share_of(corpus: SuccessCorpus, *batches: int) -> float:
    """The share in the last of several steps, given their numbers of successes."""
    *before, last = [successes(count, step) for step, count in enumerate(batches)]
    for batch in before:
        corpus.push(batch)
    return earlier_share(corpus(last), last)


@given(st.integers(0, 20), st.lists(st.integers(0, 20), max_size=4), st.integers(1, 20))
def test_a_batch_that_fills_the_buffer_has_no_share_of_earlier_steps(
    capacity: int, earlier: list[int], batch: int
) -> None:
    """Algorithm 1's corpus is the newest ``capacity`` successes, or the whole batch if that is larger."""
    added = min(sum(earlier), max(0, capacity - batch))
    for kind in (Algorithm1, BatchAccepts):
        assert share_of(kind(capacity, 0), *earlier, batch) == pytest.approx(added / (added + batch))


def test_the_default_of_some_400_successes_a_step_never_uses_its_buffer_of_256() -> None:
    assert share_of(Algorithm1(256, 0), 400, 410, 390) == 0
    assert share_of(Algorithm1(1024, 0), 400, 410, 390) == pytest.approx(634 / 1024)
    assert share_of(BufferAndBatch(256, 0), 400, 410, 390) == pytest.approx(256 / 646)
    assert share_of(Decayed(0, 0), 400, 390) == pytest.approx(360 / 750, abs=0.02)


def test_what_wins_a_task_again_is_not_of_earlier_steps_where_it_counts_once() -> None:
    corpus = EachTaskOnce(8, 0)
    corpus.push([Success(("A",), "known"), Success(("B",), "other")])
    batch = [Success(("A",), "known")] * 3
    assert earlier_share(corpus(batch), batch) == 0.5
