"""The same tasks under two conditions: an exact test that needs no distribution.

If the condition changes nothing, both conditions of a task could be exchanged, so each task's difference is
as likely with the other sign. The test adds the chances of all choices of signs whose sum is at least as far
from 0 as the observed one (Fisher 1935). Its unit is the task: rollouts of a task may depend on each other in
any way. With one rollout it is McNemar's exact test. Its rate of false alarms is at most the nominal one for
any number of tasks; ``benchmarks/trial_false_alarms.py`` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpress.core.distributions import student_quantile
from skillpress.core.intervals import FEW_TASKS
from skillpress.evaluation.statistics.bootstrap import bootstrap, over_tasks

ERROR = 0.05
"""The nominal rate of false alarms."""
DRAWS = 9_999
"""Number of choices of signs drawn for amounts, which have too many sums to add them all."""
MOST_FLIPPED = 20
"""The most seeds of which all choices of signs are counted: a million."""


@dataclass(frozen=True)
class PairedMeans:
    """A second condition minus a first one, over the same tasks."""

    first: float
    second: float
    low: float
    """Lower end of the 95% interval of the difference, for other tasks of the same kind. Where the test does
    not exclude 0, the interval contains it."""
    high: float
    p: float
    tasks: int
    more_first: int
    """Tasks with more under the first condition."""
    more_second: int

    @property
    def difference(self) -> float:
        """The mean difference."""
        return self.second - self.first


def paired_success(
    first: NDArray[np.int64], second: NDArray[np.int64], rollouts: int, seed: int
) -> PairedMeans:
    """Shares of won episodes.

    Args:
        first: won episodes of each task under the first condition, of ``rollouts``.
        seed: the seed of the interval's bootstrap.
    """
    differences = second - first
    low, high, _ = over_tasks((differences / rollouts).round(12), seed)
    return _paired(first / rollouts, second / rollouts, (low, high), sign_flips(differences))


def paired_amounts(first: NDArray[np.float64], second: NDArray[np.float64], seed: int) -> PairedMeans:
    """Means of amounts, such as tokens: one for each task and condition."""
    differences = second - first
    if len(differences) >= FEW_TASKS:
        low, high, _ = bootstrap(differences, seed)
    elif len(differences) == 1:
        low, high = -np.inf, np.inf
    else:
        error = differences.std(ddof=1) / np.sqrt(len(differences))
        half = student_quantile(len(differences) - 1, 1 - ERROR / 2) * error
        low, high = differences.mean() - half, differences.mean() + half
    return _paired(first, second, (float(low), float(high)), drawn_sign_flips(differences, seed))


def sign_flips(differences: NDArray[np.int64]) -> float:
    """The exact two-sided p of integer differences, one for each task."""
    sizes = np.abs(differences[differences != 0])
    total, observed = int(sizes.sum()), abs(int(differences.sum()))
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for size in sizes:
        chances[size:] = (chances[size:] + chances[:-size]) / 2
        chances[:size] /= 2
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chances[sums >= observed].sum()))


def sign_flips_of_seeds(differences: Sequence[float]) -> float:
    """The exact two-sided p of the mean of paired differences: of all 2^n choices of signs, the share whose
    sum is at least as far from 0. With n seeds it is at least 2 / 2^n.

    Raises:
        ValueError: there are no differences, or too many to count all choices.
    """
    values = np.asarray(differences, np.float64)
    if not 1 <= len(values) <= MOST_FLIPPED:
        raise ValueError(f"{len(values)} differences, must be 1 to {MOST_FLIPPED} to count all signs")
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    least = abs(values.sum()) - 1e-9 * np.abs(values).sum()  # equal sums may differ by rounding
    return float((np.abs(sums) >= least).mean())


def drawn_sign_flips(differences: NDArray[np.float64], seed: int) -> float:
    """The two-sided p from drawn signs. The observed sum counts as one of them, so the level holds."""
    observed, rng = abs(differences.sum()), np.random.default_rng(seed)
    signs = rng.integers(0, 2, (DRAWS, len(differences)), dtype=np.int8) * 2 - 1
    least = observed - 1e-9 * np.abs(differences).sum()  # equal sums may differ by rounding
    return float((np.count_nonzero(np.abs(signs @ differences) >= least) + 1) / (DRAWS + 1))


def _paired(
    first: NDArray[np.float64], second: NDArray[np.float64], ends: tuple[float, float], p: float
) -> PairedMeans:
    low, high = ends
    return PairedMeans(
        float(first.mean()),
        float(second.mean()),
        low=min(low, 0.0) if p > ERROR else low,
        high=max(high, 0.0) if p > ERROR else high,
        p=p,
        tasks=len(first),
        more_first=int((first > second).sum()),
        more_second=int((second > first).sum()),
    )
