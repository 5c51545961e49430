"""Few tasks: how often simulated 95% intervals cover the truth, and what many tasks leave unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.interval_coverage import cases, coverage
from skillpress.core.intervals import FEW_TASKS, clustered_mean, clustered_share, wilson
from skillpress.evaluation.statistics.bootstrap import bootstrap, over_tasks
from skillpress.evaluation.statistics.scores import Scores
from skillpress.evaluation.statistics.trainings import over_trainings

DRAWS = 600
SPREAD = (0.05 * 0.95 / DRAWS) ** 0.5
"""Standard error of a simulated coverage of 95%."""


@pytest.mark.parametrize("tasks", [10, 20])
@pytest.mark.parametrize("figure", sorted({figure for figure, *_ in cases()}))
def test_intervals_over_few_tasks_hold_the_truth_in_95_percent(figure: str, tasks: int) -> None:
    found = [
        coverage(lambda rng, d=draw: d(rng, tasks), true, DRAWS, figure, case, tasks)
        for name, case, draw, true in cases()
        if name == figure
    ]
    assert np.mean(found) > 0.935 - 2 * SPREAD
    assert min(found) > 0.92 - 2 * SPREAD  # counts of few wins are coarse and skewed


def test_tasks_that_all_tie_leave_open_what_others_would_do() -> None:
    """None of ten differed; up to 28% of the others may (Wilson), in either direction."""
    low, high, p = over_tasks(np.zeros(10), seed=0)
    assert (low, high, p) == pytest.approx((-wilson(0, 10).high, wilson(0, 10).high, 1))
    low, high, p = over_tasks(np.ones(10), seed=0)
    assert (low, high) == pytest.approx((1 - 2 * wilson(0, 10).high, 1))
    assert p == pytest.approx(2 / 2**10)  # the sign test


def test_one_task_says_next_to_nothing_of_a_difference() -> None:
    low, high, p = over_tasks(np.array([0.5]), seed=0)
    assert high - low > 1.5
    assert p == 1


def test_many_tasks_are_resampled() -> None:
    differences = np.random.default_rng(0).integers(-1, 2, FEW_TASKS).astype(float)
    assert over_tasks(differences, seed=3) == bootstrap(differences, seed=3)


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    scores = Scores(np.array([[1.0, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]]))
    differences, shares = over_trainings(scores), over_trainings(scores, shares=True)
    assert differences is not None and shares is not None
    assert differences.high > 1 >= shares.high
    assert shares.low >= 0


@pytest.mark.parametrize("tasks", [FEW_TASKS, 300])
def test_the_number_of_many_tasks_changes_no_interval(tasks: int) -> None:
    """The normal distribution and the seeds' own degrees, as results of that size were published."""
    draw = np.random.default_rng(1)
    values = draw.binomial(1, 0.7, (5, tasks)) * draw.binomial(1, 0.8, tasks).astype(float)
    of_trainings = over_trainings(Scores(values))
    assert of_trainings == over_trainings(Scores(values), shares=True)
    amounts, ones = draw.poisson(7, tasks), np.ones(tasks, dtype=np.int64)
    error = amounts.std(ddof=1) / tasks**0.5
    found = clustered_mean(amounts, ones)
    assert found is not None and found.high - found.low == pytest.approx(2 * 1.959964 * error)
    parts = draw.binomial(1, 0.3, tasks)
    of_share = clustered_share(parts, ones)
    expected = wilson(parts.mean(), tasks - 1)
    assert (of_share.low, of_share.high) == pytest.approx((expected.low, expected.high))
