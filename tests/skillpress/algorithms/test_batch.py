"""Trajectories as flat arrays."""

from __future__ import annotations

import pytest
from batches import batch, step, trajectory
from hypothesis import given
from hypothesis import strategies as st

from skillpress.algorithms.batch import batch_of


def test_parts_are_told_apart_by_name_and_credit() -> None:
    played = batch_of(
        [
            trajectory(
                [step([("invalid", -0.5, "step")]), step([("success", 10.0, "trajectory")])], won=True
            ),
            trajectory([step([])]),
        ],
        [0, 0],
        10.0,
    )
    assert {name: part.tolist() for name, part in played.parts.items()} == {
        "invalid": [-0.5, 0, 0], "success": [0, 10, 0],
    }  # fmt: skip
    assert played.credit == {"invalid": "step", "success": "trajectory"}
    assert played.trajectory.tolist() == [0, 0, 1] and played.length.tolist() == [2, 1]
    assert played.core_reward.tolist() == [10, 0] and played.won.tolist() == [True, False]
    assert played.returns.tolist() == [10, 0] and played.own.tolist() == [-0.5, 0, 0]
    assert played.scores.tolist() == [9.5, 10, 0] and played.tokens.tolist() == [2, 2, 2]


def test_steps_share_a_state_where_the_policy_saw_the_same_prompt() -> None:
    played = batch_of(
        [trajectory([step([], prompt=7), step([], prompt=8)]), trajectory([step([], prompt=7)])], [0, 0], 1.0
    )
    assert played.state.tolist() == [0, 1, 0]


def test_a_part_that_is_credited_in_two_ways_is_refused() -> None:
    steps = [step([("invalid", -1.0, "step")]), step([("invalid", -1.0, "trajectory")])]
    with pytest.raises(ValueError, match="'invalid' is credited both"):
        batch_of([trajectory(steps)], [0], 1.0)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=1, max_size=9), min_size=1, max_size=5))
def test_returns_are_the_trajectories_total_rewards_to_the_last_bit(rewards: list[list[float]]) -> None:
    """What a trajectory adds up step by step, the batch adds up in the same order."""
    played = batch(rewards, range(len(rewards)))
    totals = [
        trajectory([step([("success", r, "trajectory")]) for r in steps]).total_reward for steps in rewards
    ]
    assert played.returns.tolist() == totals


def test_an_empty_batch_is_one() -> None:
    played = batch_of([], [], 10.0)
    assert not len(played.scores) and not len(played.returns) and not len(played.rewards_to_go(1.0))
