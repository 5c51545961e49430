"""RLOO compared with leaving one out by hand, and its laws."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import one_process
from tests.support.training.batches import RLOO, algorithm, batch, of_returns, per_trajectory

GROUPS = st.lists(st.tuples(st.floats(-10, 10), st.integers(1, 5)), min_size=2, max_size=8)


def advantages(returns, groups, lengths):
    played = of_returns(returns, groups, lengths)
    return per_trajectory(algorithm(RLOO).advantages(played, one_process), played)


@given(GROUPS)
def test_the_baseline_is_the_mean_of_the_other_rollouts(rollouts) -> None:
    returns, lengths = zip(*rollouts, strict=True)
    expected = [
        value - np.mean([other for at, other in enumerate(returns) if at != place])
        for place, value in enumerate(returns)
    ]
    np.testing.assert_allclose(advantages(returns, [0] * len(returns), lengths), expected, atol=1e-9)


def test_a_rollout_that_a_selection_left_alone_in_its_group_teaches_nothing() -> None:
    np.testing.assert_allclose(advantages([7.0, 10.0, 0.0], [0, 1, 1], [2, 1, 1]), [0, 10, -10])


def test_a_part_of_its_own_counts_for_its_step_and_in_the_others_baseline() -> None:
    """The first trajectory's mean score is 9.5, the second's 0."""
    played = batch([[0.0, 10.0], [0.0]], [0, 0], own=[[0.0, -1.0], [0.0]])
    np.testing.assert_allclose(algorithm(RLOO).advantages(played, one_process), [10.0, 9.0, -9.5])


def test_with_a_discount_the_baseline_is_the_others_mean_score() -> None:
    """At 0.5 the win scores 4 and 8, a mean of 6; the other's steps score 0."""
    played = batch([[0.0, 8.0], [0.0]], [0, 0])
    found = algorithm(RLOO, discount=0.5).advantages(played, one_process)
    np.testing.assert_allclose(found, [4.0, 8.0, -6.0])
