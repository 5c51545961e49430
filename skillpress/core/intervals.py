"""95% intervals whose trials are *tasks*, because several episodes of one task are not independent.

Wilson's interval (Wilson 1927) stays inside [0, 1] and covers well at shares near 0 and 1, where the
textbook interval fails. For a success rate n is the number of tasks: the variance of a mean of task
means is at most p(1 - p) / n, so the interval is never narrower than it should be.

A share of steps, or of the won episodes, is a ratio of two sums over tasks. Its variance is the linearised
variance of a ratio (Cochran 1977, 6.4). Wilson's formula then gets the number of independent trials that
would have that variance (the effective sample size of survey statistics).

A variance that is estimated from few tasks is itself uncertain. Below :data:`FEW_TASKS` tasks Student's t
with tasks - 1 degrees of freedom replaces the normal distribution, in Wilson's formula too (Korn and Graubard
1998). ``benchmarks/interval_coverage.py`` simulates how often each interval contains the true value.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from skillpress.core.distributions import student_quantile

Z_95 = 1.959963984540054
"""The 97.5% point of the standard normal distribution."""
FEW_TASKS = 100
"""Below this number of tasks intervals are corrected; from this number on, the correction moves ends by under
2%."""
ROUGH = 10
"""Below this number of tasks even corrected intervals are rough: some hold in only 90% of simulations."""


@dataclass(frozen=True)
class Interval:
    """A 95% confidence interval."""

    low: float
    high: float


def wilson(share: float, trials: float, critical: float = Z_95) -> Interval:
    """The interval of a ``share`` in [0, 1] observed in ``trials`` independent trials.

    Args:
        critical: the 97.5% point of the distribution; Student's t if ``trials`` is an estimate.

    Raises:
        ValueError: there is less than one trial, or the share is outside [0, 1].
    """
    if trials < 1 or not 0 <= share <= 1:
        raise ValueError(f"share {share} of {trials} trials: must be a share in [0, 1] of at least one trial")
    spread = critical**2 / trials
    center = (share + spread / 2) / (1 + spread)
    half = critical * sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return Interval(max(0.0, center - half), min(1.0, center + half))


def effective_tasks(weights: NDArray[np.float64]) -> float:
    """The number of equally weighted tasks that determine a mean equally well (Kish 1965: 1 / sum of w²).

    It is the number of tasks if all seeds play the same tasks, or each plays equally many of its own.
    """
    return round(float(1 / (weights**2).sum()), 9)


def critical_value(tasks: int) -> float:
    """The 97.5% point for a variance that is estimated from two tasks or more."""
    if tasks >= FEW_TASKS:
        return Z_95
    return student_quantile(tasks - 1, 0.975)


def clustered_share(parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> Interval:
    """The interval of sum(parts) / sum(wholes), one entry per task; ``parts <= wholes``.

    Raises:
        ValueError: every entry of ``wholes`` is 0.
    """
    share = min(1.0, float(parts.sum() / wholes.sum())) if wholes.sum() else float("nan")
    tasks = int(np.count_nonzero(wholes))
    if tasks < 2:
        return wilson(share, tasks)
    variance = _ratio_variance(parts, wholes)
    if not variance:  # all tasks agree, so no variance can be estimated: count each as an independent trial
        return wilson(share, tasks)
    effective = share * (1 - share) / variance
    return wilson(share, min(max(effective, 1.0), float(wholes.sum())), critical_value(tasks))


def clustered_mean(amounts: NDArray[np.int64], episodes: NDArray[np.int64]) -> Interval | None:
    """The interval of sum(amounts) / sum(episodes), one entry per task; None for fewer than two tasks."""
    if (tasks := int(np.count_nonzero(episodes))) < 2:
        return None
    center = float(amounts.sum() / episodes.sum())
    half = critical_value(tasks) * sqrt(_ratio_variance(amounts, episodes))
    return Interval(max(0.0, center - half), center + half)


def _ratio_variance(parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> float:
    """Variance of sum(parts) / sum(wholes) over draws of tasks; tasks whose whole is 0 do not count."""
    counted = wholes > 0
    tasks, total = int(np.count_nonzero(counted)), float(wholes.sum())
    residuals = parts[counted] - parts.sum() / total * wholes[counted]
    return float((residuals**2).sum()) * tasks / (tasks - 1) / total**2
