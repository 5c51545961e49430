"""Two laws of every algorithm, whatever the credits, the discount and the rollouts.

Advantages that are divided by a deviation have a root mean square of at most 1, and trajectories that are all
the same teach nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.registry import ALGORITHMS
from skillpress.training.algorithms.batch import Batch, batch_of, one_process
from tests.support.training.batches import (
    CISPO,
    DAPO,
    DR_GRPO,
    EXPERT_ITERATION,
    GIGPO,
    GRPO,
    GSPO,
    PPO,
    REINFORCE_PP,
    RLOO,
    algorithm,
    of_returns,
    step,
    trajectory,
)

WEIGHTINGS = ("per_trajectory", "per_step")
DIVIDED = [
    *({**GRPO, "scale": "std", "baseline_weighting": by} for by in WEIGHTINGS),
    *({**section, "baseline_weighting": by} for section in (GSPO, CISPO) for by in WEIGHTINGS),
    {**GIGPO, "scale": "std", "step_weight": 0.0},
    DAPO,
]
"""Algorithms that divide by a group's deviation; GiGPO's other level has its own test."""
COMPARING = [
    *DIVIDED,
    *({**GRPO, "scale": "none", "baseline_weighting": by} for by in WEIGHTINGS),
    *({**GIGPO, "scale": scale} for scale in ("std", "none")),
    RLOO,
    DR_GRPO,
]
"""Algorithms that compare a trajectory with those of its task."""
WITHOUT_GROUPS = [REINFORCE_PP, PPO, EXPERT_ITERATION]
"""Algorithms that compare a step with the whole batch, or with nothing."""
LONGEST = 10

VALUES = st.sampled_from([0.0, -0.01, -0.1, 0.5, 1.0, 10.0]) | st.floats(-10, 10)
STEPS = st.tuples(VALUES, VALUES, VALUES, st.integers(0, LONGEST))
"""A step's reward for the trajectory, its own reward, its charge, and its tokens."""
ROLLOUTS = st.lists(STEPS, min_size=1, max_size=5)
GROUPS = st.lists(st.lists(ROLLOUTS, min_size=1, max_size=6), min_size=1, max_size=3)
DISCOUNTS = st.sampled_from([0.0, 0.5, 0.95, 1.0])


def named(section: dict) -> str:
    return "-".join(str(section[key]) for key in ("name", "scale", "baseline_weighting") if key in section)


def played(groups, charged: bool = True) -> Batch:
    """Groups of rollouts. The states of a trajectory all differ, but other trajectories share them."""
    rollouts = [rollout for group in groups for rollout in group]
    made = batch_of(
        [
            trajectory(
                [
                    step([("success", reward, "trajectory"), ("own", own, "step")], f"{place}", tokens=tokens)
                    for place, (reward, own, _, tokens) in enumerate(rollout)
                ]
            )
            for rollout in rollouts
        ],
        [number for number, group in enumerate(groups) for _ in group],
        10.0,
        LONGEST,
    )
    charges = np.array([charge for rollout in rollouts for _, _, charge, _ in rollout])
    penalty = np.bincount(made.trajectory, charges, minlength=len(rollouts))
    values = np.zeros(len(charges))
    return replace(made, penalty=penalty, charges=charges if charged else None, values=values)


def advantages(section: dict, batch: Batch, **changes: object) -> np.ndarray:
    return algorithm(section, **changes).advantages(batch, one_process)


def discounted(section: dict, discount: float) -> dict:
    return {**section, "discount": discount} if "discount" in section else section


def mean_squares(batch: Batch, found: np.ndarray, weighting: str) -> np.ndarray:
    """[groups] the mean of the squared advantages, with steps weighted as ``weighting`` says."""
    weights = np.ones(len(found)) if weighting == "per_step" else 1.0 / batch.length[batch.trajectory]
    return np.bincount(batch.step_group, weights * found**2) / np.bincount(batch.step_group, weights)


def test_the_laws_are_stated_for_every_algorithm() -> None:
    assert {section["name"] for section in (*COMPARING, *WITHOUT_GROUPS)} == set(ALGORITHMS)


@pytest.mark.parametrize("section", DIVIDED, ids=named)
@given(GROUPS, DISCOUNTS, st.booleans())
def test_a_standardised_group_has_a_root_mean_square_of_1_at_most(
    section: dict, groups, discount: float, charged: bool
) -> None:
    batch = played(groups, charged)
    found = advantages(discounted(section, discount), batch)
    assert (mean_squares(batch, found, section.get("baseline_weighting", "per_trajectory")) <= 1 + 1e-9).all()


@given(GROUPS, DISCOUNTS, st.booleans())
def test_so_have_the_steps_of_a_state_in_gigpo(groups, discount: float, charged: bool) -> None:
    batch, section = played(groups, charged), {**GIGPO, "scale": "std", "discount": discount}
    found = advantages(section, batch, step_weight=1.0) - advantages(section, batch, step_weight=0.0)
    assert (np.bincount(batch.state, found**2) <= np.bincount(batch.state) + 1e-9).all()


@pytest.mark.parametrize("section", [REINFORCE_PP, PPO], ids=named)
@given(GROUPS, DISCOUNTS, st.booleans())
def test_so_has_a_batch_that_is_normalised_as_a_whole(
    section: dict, groups, discount: float, charged: bool
) -> None:
    found = advantages(section, played(groups, charged), discount=discount)
    assert (found**2).mean() <= 1 + 1e-9


@pytest.mark.parametrize("section", COMPARING, ids=named)
@given(st.lists(st.tuples(ROLLOUTS, st.integers(1, 8)), min_size=1, max_size=3), DISCOUNTS, st.booleans())
def test_a_group_of_equal_trajectories_teaches_exactly_nothing(
    section: dict, groups, discount: float, charged: bool
) -> None:
    batch = played([[rollout] * count for rollout, count in groups], charged)
    assert (advantages(discounted(section, discount), batch) == 0).all()


@pytest.mark.parametrize("section", [s for s in COMPARING if s["name"] != "gigpo"], ids=named)
@given(VALUES, st.lists(st.integers(1, 8), min_size=1, max_size=7))
def test_equal_returns_teach_exactly_nothing_however_long_the_episodes(
    section: dict, value: float, lengths: list[int]
) -> None:
    equal = of_returns([value] * len(lengths), [0] * len(lengths), lengths)
    assert (advantages(discounted(section, 1.0), equal) == 0).all()


@pytest.mark.parametrize("section", COMPARING, ids=named)
@given(GROUPS, DISCOUNTS, st.randoms(use_true_random=False))
def test_the_order_within_a_group_and_other_groups_change_nothing(
    section: dict, groups, discount: float, random
) -> None:
    section, rollouts = discounted(section, discount), groups[0]
    whole = np.split(
        advantages(section, played(groups)),
        np.cumsum([len(rollout) for group in groups for rollout in group])[:-1],
    )
    order = random.sample(range(len(rollouts)), len(rollouts))
    alone = advantages(section, played([[rollouts[at] for at in order]]))
    np.testing.assert_allclose(alone, np.concatenate([whole[at] for at in order]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("section", COMPARING, ids=named)
@given(GROUPS, st.floats(-5, 5))
def test_a_constant_on_all_last_rewards_changes_nothing(section: dict, groups, shift: float) -> None:
    moved = [
        [[*rollout[:-1], (rollout[-1][0] + shift, *rollout[-1][1:])] for rollout in group] for group in groups
    ]
    plain, shifted = (advantages(discounted(section, 1.0), played(each)) for each in (groups, moved))
    np.testing.assert_allclose(shifted, plain, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("section", [GRPO, GSPO, CISPO], ids=named)
def test_invalid_steps_of_failures_are_told_from_the_others_and_not_blown_up(section: dict) -> None:
    """Eight failures of four steps each. Two steps of each are invalid and cost 0.1, at different places.

    All trajectories score -0.05 on average. In each, half of the steps score -0.1 and half 0: the mean square
    is 0.05^2, times 8 / 7 for a sample.
    """
    places = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 1), (0, 2)]
    groups = [[[(0.0, -0.1 * (k in invalid), 0.0, 2) for k in range(4)] for invalid in places]]
    changes = {"scale": "std"} if section is GRPO else {}
    found = advantages(section, played(groups), **changes).reshape(8, 4)
    expected = [[-1 if k in invalid else 1 for k in range(4)] for invalid in places]
    np.testing.assert_allclose(found, np.array(expected) * (7 / 8) ** 0.5, rtol=1e-4)
