"""Minibatches over ranks are the same for any number of ranks, and give each rank about the same work."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.trajectory import Step
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.minibatches import evenly, evenly_split, minibatches, updates_of_batch
from tests.support.training.thread_ranks import on_ranks


def samples(lengths: list[int], first: int) -> Batch:
    """One sample per length; its advantage is its number."""
    steps = tuple(Step((1,) * length, (2,), (-1.0,), "", "", "", None, ()) for length in lengths)
    numbers = np.arange(first, first + len(lengths), dtype=np.float64)
    return Batch.of_steps(steps, numbers, numbers / 10)


def contents(parts: list[Batch]) -> Counter[tuple[int, float, float]]:
    """(prompt length, advantage, weight) of all samples."""
    return Counter(
        (len(prompt), advantage, weight)
        for part in parts
        for (prompt, _), advantage, weight in zip(part.pairs.rows, part.advantages, part.weights, strict=True)
    )


LENGTHS = st.lists(st.integers(1, 50), min_size=0, max_size=30)


@settings(max_examples=50)
@given(st.lists(LENGTHS, min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 9))
def test_a_minibatch_is_the_same_whoever_brings_its_samples(
    lengths: list[list[int]], count: int, seed: int
) -> None:
    def learn(ranks: Ranks) -> list[Batch]:
        first = sum(len(part) for part in lengths[: ranks.rank])
        own = samples(lengths[ranks.rank], first)
        return minibatches(own, count, ranks, np.random.default_rng(seed))

    everything = samples([length for part in lengths for length in part], 0)
    alone = minibatches(everything, count, Ranks(), np.random.default_rng(seed))
    shared = on_ranks(len(lengths), learn)
    for number, whole in enumerate(alone):
        assert contents([rank[number] for rank in shared]) == contents([whole])


def episode(number: int, steps: int) -> list[Step]:
    """Steps whose prompts each extend the previous one."""
    prompt: tuple[int, ...] = (9, number)
    made = []
    for step in range(steps):
        made.append(Step(prompt, (step,), (-1.0,), "", "", "", None, ()))
        prompt = (*prompt, step, 8)
    return made


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(1, 6), max_size=8), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(0, 9),
)
def test_steps_that_go_on_from_one_another_stay_together_and_in_order(
    lengths: list[list[int]], count: int, seed: int
) -> None:
    def learn(ranks: Ranks) -> list[Batch]:
        episodes = [episode(10 * ranks.rank + n, steps) for n, steps in enumerate(lengths[ranks.rank])]
        steps = tuple(step for each in episodes for step in each)
        zeros = np.zeros(len(steps))
        return minibatches(Batch.of_steps(steps, zeros, zeros), count, ranks, np.random.default_rng(seed))

    shared = on_ranks(len(lengths), learn)
    found: Counter[tuple[int, int]] = Counter()
    for part in (part for rank in shared for part in rank):
        pairs = part.pairs.rows
        for chain in part.pairs.chains:
            assert [pairs[row][1] for row in chain] == [(step,) for step in range(len(chain))]
            found[pairs[chain.start][0][1], len(chain)] += 1
    assert found == Counter(
        (10 * rank + n, steps) for rank, own in enumerate(lengths) for n, steps in enumerate(own)
    )


def played(lengths: list[int], first: int) -> Batch:
    """Trajectories with these numbers of samples, numbered from ``first``; advantages are the numbers."""
    numbers = np.repeat(np.arange(first, first + len(lengths)), lengths)
    places = [place for length in lengths for place in range(length)]
    steps = tuple(Step((1,) * (place + 1), (2,), (-1.0,), "", "", "", None, ()) for place in places)
    return Batch.of_steps(steps, numbers.astype(float), np.zeros(len(numbers)), trajectory=numbers)


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(1, 6), max_size=8), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(0, 9),
)
def test_where_trajectories_stay_whole_a_rank_has_all_of_one_in_one_minibatch_and_in_order(
    lengths: list[list[int]], count: int, seed: int
) -> None:
    def learn(ranks: Ranks) -> list[Batch]:
        first = sum(map(len, lengths[: ranks.rank]))
        return minibatches(
            played(lengths[ranks.rank], first), count, ranks, np.random.default_rng(seed), True
        )

    everything = [length for own in lengths for length in own]
    alone = minibatches(played(everything, 0), count, Ranks(), np.random.default_rng(seed), True)
    shared = on_ranks(len(lengths), learn)
    for number, whole in enumerate(alone):
        assert contents([rank[number] for rank in shared]) == contents([whole])
    held = [Counter(part.advantages.astype(int).tolist()) for rank in shared for part in rank]
    assert sorted(number for part in held for number in part) == list(range(len(everything)))
    assert all(part[number] == everything[number] for part in held for number in part)
    for part in (part for rank in shared for part in rank):
        numbers = set(zip(part.trajectory.tolist(), part.advantages.tolist(), strict=True))
        assert len(numbers) == len({*part.trajectory.tolist()}) == len({*part.advantages.tolist()})
        prompts = [prompt for prompt, _ in part.pairs.rows]
        for number, (prompt, after) in zip(
            part.advantages.astype(int), pairwise((*prompts, ())), strict=True
        ):
            assert len(prompt) == everything[number] or len(after) == len(prompt) + 1, "in order"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 5))
def test_parts_of_sequences_are_as_even_as_whole_sequences_allow(lengths: list[int], count: int) -> None:
    order, sizes = np.arange(len(lengths)), np.array(lengths)
    parts = evenly_split(order, sizes, count)
    assert len(parts) == count and np.concatenate(parts).tolist() == order.tolist()
    assert all(abs(sizes[part].sum() - sizes.sum() / count) <= max(lengths) for part in parts)
    single = evenly_split(order, np.ones_like(sizes), count)
    for part, expected in zip(single, np.array_split(order, count), strict=True):
        assert part.tolist() == expected.tolist()


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


@given(st.integers(1, 9), st.integers(0, 10_000))
def test_without_a_size_the_number_of_updates_is_the_one_given(minibatches: int, samples: int) -> None:
    assert updates_of_batch(minibatches, 0, samples) == minibatches


@given(st.integers(1, 500), st.integers(1, 10_000))
def test_updates_are_as_few_as_keep_within_the_size(size: int, samples: int) -> None:
    parts = updates_of_batch(4, size, samples)
    assert -(-samples // parts) <= size
    assert parts == 1 or -(-samples // (parts - 1)) > size


@pytest.mark.parametrize(("samples", "parts"), [(0, 1), (256, 1), (257, 2), (128 * 50, 25)])
def test_verl_agents_256_cut_a_whole_batch_of_alfworld_into_25(samples: int, parts: int) -> None:
    assert updates_of_batch(4, 256, samples) == parts
