"""Every earlier success stays with probability 0.9 per step."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.seeds import derive
from skillpress.skills.buffer import Success, SuccessBuffer
from skillpress.skills.decayed import Decayed

pushed = st.lists(st.lists(st.integers(0, 99).map(lambda n: Success((str(n),), "t")), max_size=8), max_size=6)


def named(first: int, last: int) -> list[Success]:
    return [Success((str(number),), "t") for number in range(first, last)]


def test_which_successes_stay_is_drawn_from_the_seed_and_the_step() -> None:
    corpus = Decayed(0, 7)
    first, second = named(0, 30), named(30, 50)
    corpus.push(first)
    stayed = np.array(first, object)[np.random.default_rng(derive(7, "decayed corpus", 1)).random(30) < 0.9]
    assert corpus.earlier == stayed.tolist() and 20 < len(stayed) < 30
    assert corpus(second).judged == [*stayed, *second], "the batch is whole"
    corpus.push(second)
    both = np.array([*stayed, *second], object)
    kept = np.random.default_rng(derive(7, "decayed corpus", 2)).random(len(both)) < 0.9
    assert corpus.earlier == both[kept].tolist()


def test_a_success_of_age_a_is_there_with_probability_0_9_to_the_a() -> None:
    """Ten thousand of each step: within five standard errors, after steps with and without successes."""
    corpus, size = Decayed(0, 0), 10_000
    for step in range(8):
        corpus.push([Success((), str(step))] * size if step != 3 else [])
    for step in (0, 1, 2, 4, 5, 6, 7):
        expected = 0.9 ** (8 - step)
        share = sum(each.task == str(step) for each in corpus.earlier) / size
        assert abs(share - expected) < 5 * sqrt(expected * (1 - expected) / size)


@given(pushed, st.integers(0, 9))
def test_nothing_comes_back_and_the_order_stays(steps: list[list[Success]], seed: int) -> None:
    corpus = Decayed(0, seed)
    for batch in steps:
        before = [*corpus.earlier, *batch]
        corpus.push(batch)
        left = iter(before)
        assert all(each in left for each in corpus.earlier), "a subsequence of what was there"


@given(pushed, st.integers(0, 9))
def test_the_same_seed_keeps_the_same(steps: list[list[Success]], seed: int) -> None:
    one, other = Decayed(0, seed), Decayed(0, seed)
    for batch in steps:
        for corpus in (one, other):
            corpus.push(batch)
    assert one.earlier == other.earlier and one.state_dict() == other.state_dict()


def test_another_seed_and_another_step_keep_others() -> None:
    one, other = Decayed(0, 0), Decayed(0, 1)
    for corpus in (one, other):
        corpus.push(named(0, 200))
    assert one.earlier != other.earlier
    other.push(named(0, 200))
    assert other.earlier[-180:] != one.earlier[-180:]


def test_a_buffer_beside_it_and_the_state_of_a_buffer_are_refused() -> None:
    with pytest.raises(ValueError, match="capacity is 256, must be 0"):
        Decayed(256, 0)
    with pytest.raises(ValueError, match="'steps' is None, must be a number"):
        Decayed(0, 0).load_state_dict(SuccessBuffer(3).state_dict())
    with pytest.raises(ValueError, match="and no 'successes'"):
        Decayed(0, 0).load_state_dict({"steps": 3})
