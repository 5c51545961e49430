"""The exact paired test: against a brute force, against McNemar's, and its level; what a trial can show."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from skillpress.core.distributions import sign_test
from skillpress.evaluation.statistics.power import FEWEST, POWER, smallest_difference, tasks_for
from skillpress.evaluation.statistics.sign_flips import (
    ERROR,
    drawn_sign_flips,
    paired_amounts,
    paired_success,
    sign_flips,
)


@pytest.mark.parametrize("differences", [[3, -1, 0, 2, 2], [1], [0, 0], [4, 4, 4, 4, 4, 4], [-2, 1, 1]])
def test_it_counts_all_choices_of_signs(differences: list[int]) -> None:
    sums = [abs(np.dot(signs, differences)) for signs in product((1, -1), repeat=len(differences))]
    assert sign_flips(np.array(differences)) == pytest.approx(
        np.mean([s >= abs(sum(differences)) for s in sums])
    )


def test_with_one_rollout_it_is_mcnemars_exact_test() -> None:
    differences = np.array([1] * 61 + [-1] * 43 + [0] * 96)
    assert sign_flips(differences) == pytest.approx(sign_test(61, 104))


def test_signs_that_are_drawn_agree_with_the_exact_test() -> None:
    differences = np.random.default_rng(0).integers(-4, 6, 60)
    assert drawn_sign_flips(differences.astype(float), 0) == pytest.approx(sign_flips(differences), abs=0.015)


@pytest.mark.parametrize(("tasks", "rollouts"), [(5, 4), (12, 1), (40, 4)])
def test_the_same_agent_twice_is_told_apart_in_at_most_five_percent(tasks: int, rollouts: int) -> None:
    rng = np.random.default_rng(1)
    chance = rng.beta(0.5, 0.5, (2000, tasks))
    one, other = rng.binomial(rollouts, chance), rng.binomial(rollouts, chance)
    alarms = np.mean([sign_flips(b - a) <= ERROR for a, b in zip(one, other, strict=True)])
    assert alarms <= ERROR + 3 * np.sqrt(ERROR * (1 - ERROR) / 2000)


def test_an_interval_contains_no_difference_exactly_where_the_test_does_not_exclude_it() -> None:
    first, second = np.zeros(120, int), np.array([1] * 5 + [0] * 115)
    found = paired_success(first, second, 1, 0)
    assert (found.p, found.low, found.more_second) == (pytest.approx(2 / 32), 0.0, 5)
    found = paired_success(first, np.array([1] * 30 + [0] * 90), 1, 0)
    assert found.p < 1e-6 and found.low > 0 and found.difference == 0.25


def test_costs_are_compared_by_task() -> None:
    rng = np.random.default_rng(2)
    hard = rng.lognormal(7, 1, 50)
    found = paired_amounts(hard, hard * 0.9 + rng.normal(0, 5, 50), 0)
    assert found.p <= 0.001 and found.high < 0, "tasks differ far more than the conditions do"
    same = paired_amounts(hard, hard, 0)
    assert (same.p, same.low, same.high) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(("tasks", "rollouts"), [(40, 1), (200, 1), (50, 4)])
def test_the_smallest_difference_is_found_four_times_in_five(tasks: int, rollouts: int) -> None:
    difference = smallest_difference(tasks, rollouts)
    assert difference is not None
    rng, draws = np.random.default_rng(3), 1500
    first = rng.binomial(rollouts, 0.5 - difference / 2, (draws, tasks))
    second = rng.binomial(rollouts, 0.5 + difference / 2, (draws, tasks))
    found = np.mean([sign_flips(b - a) <= ERROR for a, b in zip(first, second, strict=True)])
    assert found == pytest.approx(POWER, abs=0.06)
    assert tasks_for(difference, rollouts) == tasks


def test_five_tasks_can_show_nothing() -> None:
    assert FEWEST == 6 and smallest_difference(5, 8) is None
    assert sign_flips(np.full(5, 8)) > ERROR >= sign_flips(np.full(6, 8))
