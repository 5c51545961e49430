"""Intervals for these trained policies: tasks are resampled, the weights stay the same.

The interval says how far the figure would move on other tasks of the same kind. It does not cover another
training; ``trainings`` does.

From :data:`FEW_TASKS` tasks on, tasks are resampled (a percentile bootstrap). Resampled means of fewer tasks
scatter too little: at 10 tasks the interval misses a difference of 0 in up to 8% and one of 14 points in 12%.
Below that number, Student's t over tasks replaces it: 4 to 6% and 8%. If few tasks all tie, neither has a
variance to use, and the interval is the bound of :func:`_all_tie`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillpress.core.distributions import student_cdf
from skillpress.core.intervals import FEW_TASKS, critical_value, wilson

RESAMPLES = 10_000


def over_tasks(differences: NDArray[np.float64], seed: int) -> tuple[float, float, float]:
    """(low, high, p) of the mean of one difference in [-1, 1] per task; p is for a mean of 0."""
    tasks = len(differences)
    if tasks >= FEW_TASKS:
        return bootstrap(differences, seed)
    if np.ptp(differences) == 0:
        return _all_tie(float(differences[0]), tasks)
    mean, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(tasks))
    half, p = critical_value(tasks) * error, 2 * student_cdf(tasks - 1, -abs(mean) / error)
    return max(-1.0, mean - half), min(1.0, mean + half), p


def _all_tie(difference: float, tasks: int) -> tuple[float, float, float]:
    """The interval that ``tasks`` equal differences leave open.

    At most the share of Wilson's upper end has another difference, and that lies in [-1, 1]. p is from the
    sign test: all of ``tasks`` fall on the same side of 0.
    """
    others = wilson(0.0, tasks).high
    low, high = difference - others * (1 + difference), difference + others * (1 - difference)
    return low, high, min(1.0, 2 * 0.5**tasks) if difference else 1.0


def bootstrap(values: Sequence[float] | NDArray[np.float64], seed: int) -> tuple[float, float, float]:
    """(low, high, p) of the mean of one value per task, resampling tasks; p is for a mean of 0.

    A resample's mean depends only on how often each distinct value was drawn, so those counts are
    drawn (multinomial) instead of the tasks. p is twice the smaller share of resampled means on
    either side of 0, counting the observed sample as one of them (Davison and Hinkley 1997, 4.2.3).
    """
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    total = int(counts.sum())
    draws = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    means = draws @ distinct / total
    low, high = np.quantile(means, [0.025, 0.975])
    tail = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return float(low), float(high), min(1.0, 2 * (tail + 1) / (RESAMPLES + 1))
