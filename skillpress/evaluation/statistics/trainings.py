"""Intervals that cover other trainings too: a t interval over training seeds and tasks.

A seed's mean over its tasks includes the luck of that training. Means of several seeds scatter by that luck
and by the chance of the episodes. If seeds share tasks, the choice of the tasks moves all means together.
Their scatter does not show this part, so it is added. With S seeds of means m_s on n_s tasks:

    V = A + C
    A = var(m_s) / S                                            what scatters from seed to seed
    C = max(0, mean over pairs of seeds of cov(m_s, m_u))       what shared tasks bring

cov(m_s, m_u) = sum over shared tasks of (x_sg - m_s)(x_ug - m_u) / sqrt(n_s (n_s - 1) n_u (n_u - 1)).
If every seed has its own tasks, C is 0 and the test is the t test over seeds. If all seeds share their tasks,
V is the estimate of variance of a crossed two-way layout with random seeds and tasks, (MS_seeds + MS_tasks -
MS_rest) / (S tasks), as in the quasi-F of Winer (1971) and Clark (1973).

Degrees of freedom: S - 1 for A; C comes from hundreds of tasks and counts as known. Satterthwaite's (S - 1)(V
/ A)^2 is too generous while A rests on one or two degrees (simulated errors of 10% at two seeds and 7% at
three, instead of 5%). So they are granted in proportion, (S - 1)(A' + C) / A', where A' is the larger of A
and of what the chance of the episodes alone would give. The test of this module simulates the errors.

Below ``FEW_TASKS`` tasks C is uncertain too. If seeds share G tasks, C has G - 1 degrees, and it enters in
proportion like A: 1 / degrees = (A' / (S - 1) + C / (G - 1)) / (A' + C). Shares of success are also skewed:
if most tasks are won, a mean of few misses the truth more often on one side. Wilson's formula with m (1 - m)
/ V trials and Student's t stays in [0, 1] and follows the skew. ``benchmarks/interval_coverage.py`` simulates
how often each interval covers the truth.

A hierarchical bootstrap would not do: a handful of resampled seeds scatter less than the seeds do. If
trainings move success by three points, its simulated errors are 21% at two seeds, 11% at three and 9% at
five.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from skillpress.core.distributions import student_cdf, student_quantile
from skillpress.core.intervals import FEW_TASKS, Interval, wilson
from skillpress.evaluation.statistics.scores import Scores

ROUNDING = 1e-24
"""Variances below this come from rounded shares and are 0 in truth."""


@dataclass(frozen=True)
class OverTrainings:
    """A mean with its interval for other trainings, tested on other tasks of the same kind."""

    seeds: int
    """Number of trainings behind the mean."""
    low: float
    """Lower end of the 95% interval."""
    high: float
    """Upper end of the interval."""
    p: float
    """Two-sided p for a mean of 0."""
    degrees: float
    """Degrees of freedom of the t distribution; few seeds give few degrees."""


def over_trainings(scores: Scores, *, shares: bool = False) -> OverTrainings | None:
    """The interval of ``scores.mean()``; None for a single seed, or if nothing varies.

    Args:
        shares: the scores are shares of episodes won, so that the interval lies in [0, 1]; otherwise
            differences of such shares.
    """
    if scores.seeds < 2:
        return None
    seeds, shared, dice = _variances(scores)
    if seeds < ROUNDING:  # seeds tie, as counts may: a rerun would scatter by chance
        seeds = dice
    variance = seeds + shared
    if variance < ROUNDING:
        return None
    mean, error = scores.mean(), sqrt(variance)
    degrees = _degrees(scores, max(seeds, dice), shared)
    critical = student_quantile(degrees, 0.975)
    found = Interval(mean - critical * error, mean + critical * error)
    if shares:
        found = _of_shares(found, mean, variance, critical, scores.tasks)
    p = 2 * student_cdf(degrees, -abs(mean) / error)
    return OverTrainings(seeds=scores.seeds, low=found.low, high=found.high, p=p, degrees=degrees)


def _degrees(scores: Scores, seeds: float, shared: float) -> float:
    """Degrees of freedom of the parts ``seeds`` (A') and ``shared`` (C) of the variance."""
    of_seeds, of_tasks = seeds / (scores.seeds - 1), 0.0
    if scores.tasks < FEW_TASKS and shared:
        of_tasks = shared / max(1, scores.shared_tasks() - 1)
    uncertain = of_seeds + of_tasks
    return (seeds + shared) / uncertain if uncertain > ROUNDING else np.inf


def _of_shares(found: Interval, mean: float, variance: float, critical: float, tasks: int) -> Interval:
    if tasks >= FEW_TASKS:
        return Interval(max(0.0, found.low), min(1.0, found.high))
    mean = min(mean, 1.0)  # a mean of ones may round above 1
    return wilson(mean, max(1.0, mean * (1 - mean) / variance), critical)


def _variances(scores: Scores) -> tuple[float, float, float]:
    """Parts of the mean's variance: A, C, and the part of A that the chance of the episodes alone gives."""
    count = scores.tasks_per_seed()[:, None]
    scaled = scores.deviations() / np.sqrt(count * np.maximum(count - 1, 1))
    products = scaled @ scaled.T
    of_tasks = float(np.trace(products)) / scores.seeds
    pairs = scores.seeds * (scores.seeds - 1)
    shared = float(products.sum() - np.trace(products)) / pairs
    seeds = float(scores.seed_means().var(ddof=1)) / scores.seeds
    return seeds, max(0.0, shared), (of_tasks - shared) / scores.seeds
