"""Which rollouts teach, by each selection."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import batch_of
from tests.support.training.batches import GRPO, algorithm, batch

GROUPS = st.lists(st.lists(st.sampled_from([0.0, 5.0, 10.0]), min_size=1, max_size=5), max_size=6)


def flat(groups: list[list[float]]):
    """A batch of one-step trajectories with these core rewards, group by group."""
    rewards = [[reward] for group in groups for reward in group]
    return batch(rewards, [number for number, group in enumerate(groups) for _ in group])


def selected(groups: list[list[float]], select: dict, seed: int = 0) -> list[bool]:
    return algorithm(GRPO, select=select).select.kept(flat(groups), seed).tolist()


@given(GROUPS)
def test_none_keeps_everything(groups: list[list[float]]) -> None:
    assert all(selected(groups, {"name": "none"}))


@given(GROUPS)
def test_varied_groups_keeps_whole_groups_and_those_alone_that_differ_within(
    groups: list[list[float]],
) -> None:
    kept = selected(groups, {"name": "varied_groups", "refills": 0})
    assert kept == [len(set(group)) > 1 for group in groups for _ in group]


def test_groups_are_compared_by_the_core_reward_and_not_by_penalties() -> None:
    played = batch([[10.0], [10.0]], [0, 0], own=[[-1.0], [0.0]])
    method = algorithm(GRPO, select={"name": "varied_groups", "refills": 0})
    assert method.select.kept(played, 0).tolist() == [False, False]


@given(GROUPS, st.floats(0, 0.99), st.integers(0, 9))
def test_dynamic_sampling_drops_whole_groups_and_never_a_mixed_one(
    groups: list[list[float]], discard: float, seed: int
) -> None:
    select = {"name": "dynamic_sampling", "discard": discard, "refills": 0}
    kept = iter(selected(groups, select, seed))
    for group in groups:
        (keep,) = {next(kept) for _ in group}
        assert keep or set(group) in ({0.0}, {10.0})
    assert selected(groups, select, seed) == selected(groups, select, seed), "the same seed draws the same"


def test_dynamic_sampling_drops_uniform_groups_at_its_rate() -> None:
    """Five standard deviations of 4000 draws at 0.3 are sqrt(4000 x 0.3 x 0.7) x 5 = 145."""
    uniform = [[0.0, 0.0], [10.0, 10.0]] * 2000
    kept = selected(uniform, {"name": "dynamic_sampling", "discard": 0.3, "refills": 2})
    assert abs((8000 - sum(kept)) / 2 - 1200) < 145
    assert kept != selected(uniform, {"name": "dynamic_sampling", "discard": 0.3, "refills": 2}, seed=1)


def test_an_empty_batch_has_nothing_to_select() -> None:
    for select in (
        {"name": "varied_groups", "refills": 1},
        {"name": "dynamic_sampling", "discard": 0.5, "refills": 0},
    ):
        kept = algorithm(GRPO, select=select).select.kept(batch_of([], [], 10.0, 4), 0)
        assert kept.dtype == np.bool_ and not len(kept)
