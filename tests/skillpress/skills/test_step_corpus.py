"""The corpus of a step's dictionary, in each reading of the paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.registry import CORPORA, lookup
from skillpress.skills.buffer import SuccessBuffer
from skillpress.skills.step_corpus import algorithm_1, batch_accepts, buffer_and_batch

batches = st.lists(st.lists(st.integers(0, 99).map(lambda n: (str(n),)), max_size=6), max_size=6)
A, B, C, D = ("A",), ("B",), ("C",), ("D",)


def filled(capacity: int, pushed: list[list[tuple[str, ...]]]) -> SuccessBuffer:
    buffer = SuccessBuffer(capacity)
    for batch in pushed:
        buffer.push(batch)
    return buffer


@given(st.integers(0, 8), batches, st.lists(st.integers(100, 199).map(lambda n: (str(n),)), max_size=9))
def test_algorithm_1_appends_first_so_the_corpus_is_the_larger_of_buffer_and_batch(capacity, pushed, batch):
    before = filled(capacity, pushed)
    corpus = algorithm_1(before, batch).judged
    after = filled(capacity, [*pushed, batch])
    assert corpus == (after.sequences if len(batch) <= capacity else batch)
    assert len(corpus) <= max(capacity, len(batch))


@given(st.integers(0, 8), batches, st.lists(st.integers(100, 199).map(lambda n: (str(n),)), max_size=9))
def test_buffer_and_batch_drops_nothing(capacity, pushed, batch):
    before = filled(capacity, pushed)
    assert buffer_and_batch(before, batch).judged == before.sequences + batch


@given(st.integers(0, 8), batches, st.lists(st.integers(100, 199).map(lambda n: (str(n),)), max_size=9))
def test_where_the_batch_accepts_the_cluster_that_ranks_is_algorithm_1s(capacity, pushed, batch):
    before = filled(capacity, pushed)
    corpus = batch_accepts(before, batch)
    assert corpus.judged == batch
    assert [*corpus.ranked_with, *corpus.judged] == algorithm_1(before, batch).judged


@pytest.mark.parametrize("name", CORPORA)
def test_no_reading_changes_the_buffer_and_without_a_buffer_all_are_the_batch(name):
    corpus = lookup(CORPORA, name, "skills.corpus")
    buffer = filled(3, [[A, B]])
    corpus(buffer, [C, D])
    assert buffer.sequences == [A, B]
    alone = corpus(SuccessBuffer(0), [C, D])
    assert (alone.judged, list(alone.ranked_with)) == ([C, D], [])


def test_equal_sequences_of_two_trajectories_are_two():
    assert algorithm_1(filled(4, [[A]]), [A]).judged == [A, A]


def test_a_case_of_each():
    buffer = filled(3, [[A, B, C]])
    assert algorithm_1(buffer, [D]).judged == [B, C, D]
    assert buffer_and_batch(buffer, [D]).judged == [A, B, C, D]
    assert (batch_accepts(buffer, [D]).judged, batch_accepts(buffer, [D]).ranked_with) == ([D], [B, C])
