"""The corpus of a step's dictionary, in each reading of the paper, and with every task once."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.registry import CORPORA, lookup
from skillpress.skills.buffer import Success, SuccessBuffer
from skillpress.skills.each_task_once import EachTaskOnce
from skillpress.skills.fit import fit
from skillpress.skills.step_corpus import Algorithm1, BatchAccepts, BufferAndBatch, SuccessCorpus


def numbered(first: int, last: int) -> st.SearchStrategy[Success]:
    return st.builds(Success, st.integers(first, last).map(lambda n: (str(n),)), st.sampled_from("tuv"))


earlier = st.lists(st.lists(numbered(0, 99), max_size=6), max_size=6)
batches = st.lists(numbered(100, 199), max_size=9)
A, B, C, D = (Success((skill,), f"task-{skill}") for skill in "ABCD")


def after(corpus: SuccessCorpus, *pushed: list[Success]) -> SuccessCorpus:
    """The corpus after steps with these successes."""
    for batch in pushed:
        corpus.push(batch)
    return corpus


def buffered(capacity: int, *pushed: list[Success]) -> list[Success]:
    buffer = SuccessBuffer(capacity)
    for batch in pushed:
        buffer.push(batch)
    return buffer.successes


@given(st.integers(0, 8), earlier, batches)
def test_algorithm_1_appends_first_so_the_corpus_is_the_larger_of_buffer_and_batch(capacity, pushed, batch):
    corpus = after(Algorithm1(capacity, 0), *pushed)(batch).judged
    assert corpus == (buffered(capacity, *pushed, batch) if len(batch) <= capacity else batch)
    assert len(corpus) <= max(capacity, len(batch))


@given(st.integers(0, 8), earlier, batches)
def test_buffer_and_batch_drops_nothing(capacity, pushed, batch):
    corpus = after(BufferAndBatch(capacity, 0), *pushed)
    assert corpus.earlier == buffered(capacity, *pushed)
    assert corpus(batch).judged == corpus.earlier + batch


@given(st.integers(0, 8), earlier, batches)
def test_where_the_batch_accepts_the_cluster_that_ranks_is_algorithm_1s(capacity, pushed, batch):
    corpus = after(BatchAccepts(capacity, 0), *pushed)(batch)
    assert corpus.judged == batch
    cluster = after(Algorithm1(capacity, 0), *pushed)(batch).judged
    assert [*corpus.ranked_with, *corpus.judged] == cluster


@given(st.integers(0, 8), earlier, batches)
def test_each_task_once_has_every_pair_of_algorithm_1_and_none_twice(capacity, pushed, batch):
    corpus = after(EachTaskOnce(capacity, 0), *pushed)(batch)
    cluster = after(Algorithm1(capacity, 0), *pushed)(batch).judged
    assert Counter((each.task, each.skills) for each in corpus.judged) == Counter(
        {(each.task, each.skills) for each in cluster}
    )
    assert not corpus.ranked_with


@pytest.mark.parametrize("name", CORPORA)
def test_making_a_corpus_keeps_nothing_and_the_first_is_the_batch(name):
    corpus = lookup(CORPORA, name, "skills.corpus")(0, 0)
    alone = corpus([C, D])
    assert (alone.judged, list(alone.ranked_with)) == ([C, D], [])
    assert corpus.earlier == []


@pytest.mark.parametrize("name", CORPORA)
@given(earlier, batches)
def test_a_restored_corpus_goes_on_as_the_other_would_have(name, pushed, batch):
    """The state passes through a checkpoint's JSON after every step."""
    make = lookup(CORPORA, name, "skills.corpus")
    capacity = 0 if name == "decayed" else 5  # it keeps no buffer
    whole, resumed = make(capacity, 3), make(capacity, 3)
    for step in pushed:
        whole.push(step)
        resumed.push(step)
        state, resumed = json.loads(json.dumps(resumed.state_dict())), make(capacity, 3)
        resumed.load_state_dict(state)
    assert resumed.earlier == whole.earlier and resumed(batch) == whole(batch)


def test_equal_sequences_of_two_trajectories_are_two():
    assert after(Algorithm1(4, 0), [A])([A]).judged == [A, A]


def test_a_case_of_each():
    algorithm_1, both, accepts = (
        after(c(3, 0), [A, B, C]) for c in (Algorithm1, BufferAndBatch, BatchAccepts)
    )
    assert algorithm_1([D]).judged == [B, C, D]
    assert both([D]).judged == [A, B, C, D]
    assert (accepts([D]).judged, accepts([D]).ranked_with) == ([D], [B, C])


def test_each_task_once_counts_a_sequence_for_every_task_and_a_task_for_every_sequence():
    first, second = Success(("A", "B"), "t"), Success(("A", "B"), "u")
    other = Success(("A",), "t")
    corpus = after(EachTaskOnce(256, 0), [first, first, other])
    assert corpus([first, second, second, other]).judged == [first, other, second]
    assert corpus.earlier == [first, first, other], "the buffer holds repetitions"


def test_a_private_solution_of_one_task_is_a_phrase_only_where_its_repetitions_count():
    """Twelve episodes of one task repeat A B; six tasks share C D, two episodes each. K = 4 and L = 2.

    A phrase takes 2 log2 4 + log2 2 = 5 bits. Where each pair counts once, A B saves an index of log2 5 bits.
    """
    private = [Success(("A", "B"), "t")] * 12
    shared = [Success(("C", "D"), f"task-{number}") for number in range(6)] * 2
    learned = {}
    for corpus in (Algorithm1(256, 0), EachTaskOnce(256, 0)):
        judged = [each.skills for each in corpus([*private, *shared]).judged]
        learned[type(corpus)] = set(fit(judged, "ABCD", 2).learned)
    assert learned == {Algorithm1: {("A", "B"), ("C", "D")}, EachTaskOnce: {("C", "D")}}
