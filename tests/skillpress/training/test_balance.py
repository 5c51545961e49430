"""Minibatches over ranks: the same ones for any number of ranks, and about as much for each to do."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_ranks import on_ranks

from skillpress.training.balance import evenly, minibatches
from skillpress.training.samples import Samples
from skillpress.trajectory import Step
from skillpress.workers.distributed import Ranks


def samples(lengths: list[int], first: int) -> Samples:
    """One sample per length; its advantage is its number."""
    steps = tuple(Step((1,) * length, (2,), (-1.0,), "", "", "", None, ()) for length in lengths)
    numbers = np.arange(first, first + len(lengths), dtype=np.float64)
    return Samples(steps, numbers, numbers / 10)


def contents(parts: list[Samples]) -> Counter[tuple[int, float, float]]:
    """(prompt length, advantage, weight) of all samples."""
    return Counter(
        (len(step.prompt_ids), advantage, weight)
        for part in parts
        for step, advantage, weight in zip(part.steps, part.advantages, part.weights, strict=True)
    )


LENGTHS = st.lists(st.integers(1, 50), min_size=0, max_size=30)


@settings(max_examples=50)
@given(st.lists(LENGTHS, min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 9))
def test_a_minibatch_is_the_same_whoever_brings_its_samples(
    lengths: list[list[int]], count: int, seed: int
) -> None:
    def learn(ranks: Ranks) -> list[Samples]:
        first = sum(len(part) for part in lengths[: ranks.rank])
        own = samples(lengths[ranks.rank], first)
        return minibatches(own, count, ranks, np.random.default_rng(seed))

    everything = samples([length for part in lengths for length in part], 0)
    alone = minibatches(everything, count, Ranks(), np.random.default_rng(seed))
    shared = on_ranks(len(lengths), learn)
    for number, whole in enumerate(alone):
        assert contents([rank[number] for rank in shared]) == contents([whole])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), min_size=1, max_size=200))
def test_no_rank_has_more_than_its_share_and_one_sample(rows: list[tuple[int, int]]) -> None:
    owners, costs = (np.array(column) for column in zip(*rows, strict=True))
    loads = np.bincount(evenly(owners, costs, 4), costs, 4)
    assert loads.sum() == costs.sum()
    assert loads.max() <= costs.sum() / 4 + costs.max()


def test_only_what_is_too_much_is_handed_over() -> None:
    owners = np.array([0] * 12 + [1] * 8)
    learners = evenly(owners, np.full(20, 7), 2)
    assert np.bincount(learners).tolist() == [10, 10]
    assert (learners[owners == 1] == 1).all()
