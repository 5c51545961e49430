"""Group-relative advantages, compared with hand calculation, and their laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import one_process
from tests.support.training.batches import GRPO, algorithm, batch, of_returns, per_trajectory

WEIGHTINGS = st.sampled_from(["per_trajectory", "per_step"])
SCALES = st.sampled_from(["none", "std"])


def advantages(returns, groups, lengths, **changes):
    """[trajectories]; without parts of their own the steps of a trajectory share one advantage."""
    played = of_returns(returns, groups, lengths)
    return per_trajectory(algorithm(GRPO, **changes).advantages(played, one_process), played)


def test_each_trajectory_counts_once_by_hand() -> None:
    np.testing.assert_allclose(advantages([10.0, 0.0, 2.0], [0, 0, 0], [1, 30, 5]), [6.0, -4.0, -2.0])


def test_counting_each_step_lets_the_long_failure_dominate() -> None:
    # Mean = (1 x 10 + 9 x 0) / 10 steps = 1.
    found = advantages([10.0, 0.0], [0, 0], [1, 9], baseline_weighting="per_step")
    np.testing.assert_allclose(found, [9.0, -1.0])


def test_division_by_the_sample_deviation_by_hand() -> None:
    # Deviation of (10, 0) with n - 1 = 1 below: sqrt(25 + 25) = 7.0711.
    found = advantages([10.0, 0.0], [0, 0], [3, 3], scale="std")
    np.testing.assert_allclose(found, [5 / 50**0.5, -5 / 50**0.5], rtol=1e-5)


def test_a_step_counted_deviation_equals_the_deviation_of_repeated_rewards() -> None:
    returns, steps = np.array([3.0, 8.0, 1.0]), np.array([2, 5, 3])
    repeated = np.repeat(returns, steps)
    expected = (returns - repeated.mean()) / (repeated.std(ddof=1) + 1e-6)
    found = advantages(returns, [0, 0, 0], steps, baseline_weighting="per_step", scale="std")
    np.testing.assert_allclose(found, expected)


@given(st.lists(st.floats(0, 10), min_size=4, max_size=16))
def test_advantages_of_a_group_do_not_depend_on_the_other_groups(returns: list[float]) -> None:
    values, groups = np.array(returns), np.arange(len(returns)) % 2
    together = advantages(values, groups, np.ones(len(values), int))
    for group in (0, 1):
        alone = values[groups == group] - values[groups == group].mean()
        np.testing.assert_allclose(together[groups == group], alone, atol=1e-9)


def test_a_part_of_its_own_lowers_one_steps_score_as_in_verl_agent() -> None:
    """Scores of the steps are 10, 10 - 1 and 0, 0: mean 4.75, deviation that of the four."""
    played = batch([[0.0, 10.0], [0.0, 0.0]], [0, 0], own=[[0.0, -1.0], [0.0, 0.0]])
    scores = np.array([10.0, 9.0, 0.0, 0.0])
    by_step = algorithm(GRPO, baseline_weighting="per_step").advantages(played, one_process)
    np.testing.assert_allclose(by_step, scores - 4.75)
    scaled = algorithm(GRPO, baseline_weighting="per_step", scale="std").advantages(played, one_process)
    np.testing.assert_allclose(scaled, (scores - 4.75) / (scores.std(ddof=1) + 1e-6))


def test_per_trajectory_a_trajectory_counts_with_its_steps_mean_score() -> None:
    """(10 + 9) / 2 = 9.5 against 0, 0, 0: mean 4.75, though the failure has more steps."""
    played = batch([[0.0, 10.0], [0.0] * 3], [0, 0], own=[[0.0, -1.0], [0.0] * 3])
    found = algorithm(GRPO).advantages(played, one_process)
    np.testing.assert_allclose(found, [5.25, 4.25, -4.75, -4.75, -4.75])


def test_a_penalty_of_the_shaping_is_every_steps() -> None:
    played = replace(of_returns([10.0, 0.0], [0, 0], [2, 1]), penalty=np.array([4.0, 0.0]))
    np.testing.assert_allclose(algorithm(GRPO).advantages(played, one_process), [3.0, 3.0, -3.0])


@pytest.mark.parametrize(
    ("aggregation", "expected"), [("token_mean", [0.125, 0.125]), ("sequence_mean", [0.25, 1 / 12])]
)
def test_the_section_says_how_tokens_are_averaged(aggregation: str, expected: list[float]) -> None:
    """The step has 8 tokens in 4 samples; these two samples have 1 and 3 tokens."""
    method = algorithm(GRPO, aggregation=aggregation)
    np.testing.assert_allclose(method.token_weights(np.array([1, 3]), 8.0, 4.0, 4), expected)


@pytest.mark.parametrize(("weighting", "mean"), [("per_trajectory", 7 / 3), ("per_step", 14 / 4)])
def test_with_a_discount_an_early_step_scores_less_than_the_last(weighting: str, mean: float) -> None:
    """At 0.5 a win of 8 in three steps scores 2, 4, 8, a mean of 14 / 3, and the failure 0."""
    played = batch([[0.0, 0.0, 8.0], [0.0]], [0, 0])
    found = algorithm(GRPO, discount=0.5, baseline_weighting=weighting).advantages(played, one_process)
    np.testing.assert_allclose(found, np.array([2.0, 4.0, 8.0, 0.0]) - mean)
