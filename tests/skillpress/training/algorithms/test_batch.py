"""Trajectories as flat arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Summary
from skillpress.training.algorithms.batch import batch_of
from tests.support.training.batches import batch, step, trajectory


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
        4,
    )
    assert {name: part.tolist() for name, part in played.parts.items()} == {
        "invalid": [-0.5, 0, 0], "success": [0, 10, 0],
    }  # fmt: skip
    assert played.credit == {"invalid": "step", "success": "trajectory"}
    assert played.trajectory.tolist() == [0, 0, 1] and played.length.tolist() == [2, 1]
    assert played.core_reward.tolist() == [10, 0] and played.won.tolist() == [True, False]
    assert played.returns.tolist() == [10, 0] and played.own.tolist() == [-0.5, 0, 0]
    assert played.scores.tolist() == [9.5, 10, 0] and played.tokens.tolist() == [2, 2, 2]


def test_steps_of_a_group_share_a_state_where_the_environment_says_so() -> None:
    first, second = [step([], "4 6"), step([], "24")], [step([], "4 6")]
    played = batch_of([trajectory(first), trajectory(second), trajectory(second)], [0, 0, 1], 1.0, 4)
    assert played.state.tolist() == [0, 1, 0, 2], "another group's state is another"


def test_where_the_environment_names_no_state_the_last_observation_does() -> None:
    """The first episode saw "" and then "a door"; the second saw a door at once, then a wall, then a door
    again."""
    first = trajectory([step([], observation="a door"), step([])])
    second = trajectory([step([], observation="a wall"), step([], observation="a door"), step([])])
    played = batch_of([first, replace(second, first_observation="a door")], [0, 0], 1.0, 4)
    assert played.state.tolist() == [0, 1, 1, 2, 1]


def test_a_summary_in_a_state_is_compared_with_no_action_there() -> None:
    acting, summing_up = trajectory([step([], "4 6")]), step([], "4 6")
    summarized = replace(acting, summaries=(Summary(0, summing_up),))
    assert batch_of([summarized, summarized], [0, 0], 1.0, 4).state.tolist() == [0, 1, 0, 1]


def test_a_part_that_is_credited_in_two_ways_is_refused() -> None:
    steps = [step([("invalid", -1.0, "step")]), step([("invalid", -1.0, "trajectory")])]
    with pytest.raises(ValueError, match="'invalid' is credited both"):
        batch_of([trajectory(steps)], [0], 1.0, 4)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=1, max_size=9), min_size=1, max_size=5))
def test_returns_are_the_trajectories_total_rewards_to_the_last_bit(rewards: list[list[float]]) -> None:
    """The batch adds rewards in the same order as a trajectory does step by step."""
    played = batch(rewards, range(len(rewards)))
    totals = [
        trajectory([step([("success", r, "trajectory")]) for r in steps]).total_reward for steps in rewards
    ]
    assert played.returns.tolist() == totals


def test_an_empty_batch_is_one() -> None:
    played = batch_of([], [], 10.0, 4)
    assert not len(played.scores) and not len(played.returns) and not len(played.rewards_to_go(1.0))


def test_a_discount_takes_off_a_score_what_comes_late_and_nothing_that_came_before() -> None:
    """Rewards 2, 0, 8 at 0.5: before the steps 0, 2, 2 and from them on 2 + 2, 4, 8; the own part stays."""
    played = batch([[2.0, 0.0, 8.0]], [0], own=[[0.0, -1.0, 0.0]]).discounted(0.5)
    assert played.scores.tolist() == [4, 6 - 1, 10]
    assert played.returns.tolist() == [10], "of the whole episode"


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=1, max_size=6), min_size=1, max_size=5),
    st.floats(0, 1, exclude_max=True),
)
def test_a_discounted_score_is_what_was_earned_before_and_the_discounted_return(
    rewards: list[list[float]], discount: float
) -> None:
    expected = [
        sum(steps[:k]) + sum(discount ** (later - k) * steps[later] for later in range(k, len(steps)))
        for steps in rewards
        for k in range(len(steps))
    ]
    played = batch(rewards, range(len(rewards)))
    np.testing.assert_allclose(played.discounted(discount).scores, expected, atol=1e-12)
    assert played.discounted(1.0) is played


def test_a_measure_of_steps_that_the_trajectory_is_credited_with_rewards_earlier_steps_too() -> None:
    """L0: each of three good steps has 0.1 for its format and 0.1 for running; the answer is right."""
    steps = [("format", 0.1, "trajectory"), ("executed", 0.1, "trajectory")]
    last = [*steps, ("success", 1.0, "trajectory")]
    played = batch_of([trajectory([step(steps), step(steps), step(last)], won=True)], [0], 1.0, 4)
    np.testing.assert_allclose(played.rewards_to_go(1.0), [1.6, 1.4, 1.2])


def test_a_measure_credited_by_its_mean_adds_at_most_its_weight() -> None:
    """L0 as released: (0.1 + 0.1) / n at each of n steps, and 0.8 for a right answer; discount 0.95."""
    steps = [("format", 0.1, "mean"), ("executed", 0.1, "mean")]
    last = [*steps, ("success", 0.72, "trajectory"), ("has_answer", 0.08, "trajectory")]
    won = trajectory([step(steps), step(steps), step(last)], won=True)
    played = batch_of([won, trajectory([step(steps)])], [0, 1], 0.72, 4)
    np.testing.assert_allclose(played.rewards_to_go(0.95).round(3), [0.912, 0.890, 0.867, 0.2])
    np.testing.assert_allclose(played.returns, [1.0, 0.2])
    assert set(played.credit.values()) == {"trajectory"}


def test_a_discounted_penalty_of_the_shaping_falls_where_the_success_does() -> None:
    """The last step has 10 - 4, and the step before it half of that."""
    played = replace(batch([[0.0, 10.0]], [0]), penalty=np.array([4.0]))
    assert played.discounted(0.5).scores.tolist() == [3, 6]


def test_a_penalty_that_steps_pay_is_in_no_return_and_in_each_steps_own_score() -> None:
    """Both steps have 10, minus 3 at the first and 1 at the second; a discount does not change this."""
    played = replace(
        batch([[0.0, 10.0], [0.0]], [0, 0]), penalty=np.array([4.0, 0.0]), charges=np.array([3.0, 1.0, 0.0])
    )
    assert played.returns.tolist() == [10, 0]
    assert played.own.tolist() == [-3, -1, 0]
    assert played.scores.tolist() == [7, 9, 0]
    assert played.rewards_to_go(1.0).tolist() == [7, 9, 0]
    assert played.discounted(0.5).scores.tolist() == [2, 9, 0]


@given(st.lists(st.lists(st.floats(0, 2), min_size=1, max_size=5), min_size=1, max_size=5))
def test_whoever_pays_the_same_is_taken_off_in_all(charges: list[list[float]]) -> None:
    plain = batch([[0.0] * (len(steps) - 1) + [10.0] for steps in charges], [0] * len(charges))
    paid = replace(plain, penalty=np.array([sum(steps) for steps in charges]))
    by_steps = replace(paid, charges=np.concatenate([np.array(steps) for steps in charges]))
    sums = [found.returns.sum() + found.own.sum() for found in (paid, by_steps)]
    assert sums[0] == pytest.approx(sums[1])
