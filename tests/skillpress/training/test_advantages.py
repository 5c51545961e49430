"""Group-relative advantages, against hand calculation and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.advantages import GroupAdvantage


def test_one_vote_per_trajectory_by_hand() -> None:
    advantages = GroupAdvantage()(np.array([10.0, 0.0, 2.0]), np.array([0, 0, 0]), np.array([1, 30, 5]))
    np.testing.assert_allclose(advantages, [6.0, -4.0, -2.0])


def test_one_vote_per_step_lets_the_long_failure_dominate() -> None:
    # Mean = (1 x 10 + 9 x 0) / 10 steps = 1.
    advantages = GroupAdvantage(vote="per_step")(np.array([10.0, 0.0]), np.array([0, 0]), np.array([1, 9]))
    np.testing.assert_allclose(advantages, [9.0, -1.0])


def test_division_by_the_sample_deviation_by_hand() -> None:
    # Deviation of (10, 0) with n - 1 = 1 below: sqrt(25 + 25) = 7.0711.
    advantages = GroupAdvantage(scale="std")(np.array([10.0, 0.0]), np.array([0, 0]), np.array([3, 3]))
    np.testing.assert_allclose(advantages, [5 / 50**0.5, -5 / 50**0.5], rtol=1e-5)


def test_a_step_counted_deviation_equals_the_deviation_of_repeated_rewards() -> None:
    returns, steps = np.array([3.0, 8.0, 1.0]), np.array([2, 5, 3])
    repeated = np.repeat(returns, steps)
    expected = (returns - repeated.mean()) / (repeated.std(ddof=1) + 1e-6)
    np.testing.assert_allclose(GroupAdvantage("per_step", "std")(returns, np.zeros(3, int), steps), expected)


@pytest.mark.parametrize("scale", ["std", "none"])
def test_a_group_of_equal_returns_teaches_exactly_nothing(scale: str) -> None:
    advantages = GroupAdvantage(scale=scale)(np.full(7, 0.1 + 0.2), np.zeros(7, int), np.arange(1, 8))
    assert (advantages == 0).all()


@given(
    st.lists(st.floats(-10, 10), min_size=2, max_size=12),
    st.floats(-5, 5),
    st.sampled_from(["per_trajectory", "per_step"]),
)
def test_a_constant_added_to_all_returns_changes_nothing(
    returns: list[float], shift: float, vote: str
) -> None:
    groups, steps = np.arange(len(returns)) % 2, np.arange(1, len(returns) + 1)
    advantage = GroupAdvantage(vote=vote)  # type: ignore[arg-type]
    plain = advantage(np.array(returns), groups, steps)
    np.testing.assert_allclose(advantage(np.array(returns) + shift, groups, steps), plain, atol=1e-9)


@given(st.lists(st.floats(0, 10), min_size=4, max_size=16))
def test_advantages_of_a_group_do_not_depend_on_the_other_groups(returns: list[float]) -> None:
    values = np.array(returns)
    groups = np.arange(len(values)) % 2
    together = GroupAdvantage()(values, groups, np.ones(len(values), int))
    for group in (0, 1):
        alone = values[groups == group] - values[groups == group].mean()
        np.testing.assert_allclose(together[groups == group], alone, atol=1e-9)
