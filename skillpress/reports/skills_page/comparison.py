"""Which phrases distinguish two groups of traces: successes from failures, or one version from another.

For each phrase the *risk difference* is the share of the first group's traces that hold it (as consecutive
skills), minus the second group's share. With m phrases, intervals at 95% each would miss somewhere more often
than not. So each holds at 1 - 0.05/m (Bonferroni), and all hold together with at least 95%, however the
phrases depend on each other.

- The choice of phrases must not depend on success. They come from a dictionary that is fitted to all traces
  of both groups together, so it contains the failures' own routines, and favours no group.
- An interval is Newcombe's (1998, method 10: Wilson's intervals of both shares, combined), which keeps its
  level for shares near 0 and 1.
- Traces of one task are not independent. If tasks have several traces, the variance of the difference is the
  linearised one over tasks. Wilson's formula then gets the number of independent trials with the same
  variance, and the normal quantile becomes Student's with one degree of freedom less than there are tasks.

A phrase that separates is not a cause: long traces hold more phrases, and failures are often long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from skillpress.core.distributions import normal_quantile, student_quantile
from skillpress.reports.skills_page.routines import Usage
from skillpress.skills.dictionary import Skills

ERROR = 0.05
"""Family-wise error rate: the chance that at least one interval misses its true value."""


@dataclass(frozen=True)
class PhraseContrast:
    """One phrase in both groups."""

    phrase: Skills
    first: float
    """Share of the first group's traces that hold the phrase."""
    second: float
    low: float
    """Lower end of the interval of ``first - second``, corrected for the number of phrases."""
    high: float

    @property
    def difference(self) -> float:
        """The risk difference."""
        return self.first - self.second

    @property
    def separates(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class GroupComparison:
    """Two groups of traces."""

    names: tuple[str, str]
    traces: tuple[int, int]
    tasks: int
    """Number of different tasks in both groups together."""
    contrasts: tuple[PhraseContrast, ...]
    """All phrases, the clearest difference first."""

    @property
    def separating(self) -> tuple[PhraseContrast, ...]:
        """The phrases whose interval excludes 0."""
        return tuple(contrast for contrast in self.contrasts if contrast.separates)


def compare(
    held: Usage,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    tasks: Sequence[str],
    names: tuple[str, str],
) -> GroupComparison:
    """Compare two groups of the traces of a log.

    Args:
        held: the holdings of a dictionary that was fitted without regard to the groups.
        first: (traces,) whether each trace is in the first group.
        second: (traces,) whether each trace is in the second group.
        tasks: (traces,) the task of each trace; empty for a trace that stands alone.
        names: the names of the groups.

    Raises:
        ValueError: a group is empty.
    """
    if not first.any() or not second.any():
        raise ValueError(f"both need a trace: {names[0]} has {first.sum()}, {names[1]} has {second.sum()}")
    taking_part = first | second
    clusters = clusters_of(tasks, taking_part)
    distinct = int(clusters.max()) + 1
    clustered = 1 < distinct < taking_part.sum()
    chance = 1 - ERROR / (2 * max(len(held.phrases), 1))
    quantile = student_quantile(distinct - 1, chance) if clustered else normal_quantile(chance)
    contrasts = []
    for number, phrase in enumerate(held.phrases):
        holders = held.having(number)
        shares = float(holders[first].mean()), float(holders[second].mean())
        effect = design_effect(holders, first, second, clusters) if clustered else 1.0
        trials = int(first.sum()) / effect, int(second.sum()) / effect
        low, high = newcombe(shares, trials, quantile)
        contrasts.append(PhraseContrast(phrase, first=shares[0], second=shares[1], low=low, high=high))
    contrasts.sort(key=lambda c: (-max(c.low, -c.high, 0.0), -abs(c.difference), c.phrase))
    sizes = int(first.sum()), int(second.sum())
    return GroupComparison(names, sizes, tasks=distinct, contrasts=tuple(contrasts))


def newcombe(
    shares: tuple[float, float], trials: tuple[float, float], quantile: float
) -> tuple[float, float]:
    """The interval of a difference between two shares (Newcombe 1998, method 10)."""
    (one, other), difference = shares, shares[0] - shares[1]
    low, high = wilson(one, trials[0], quantile)
    other_low, other_high = wilson(other, trials[1], quantile)
    below = sqrt((one - low) ** 2 + (other_high - other) ** 2)
    above = sqrt((high - one) ** 2 + (other - other_low) ** 2)
    return max(-1.0, difference - below), min(1.0, difference + above)


def wilson(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval of a share."""
    spread = quantile**2 / trials
    center = (share + spread / 2) / (1 + spread)
    half = quantile * sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def clusters_of(tasks: Sequence[str], taking_part: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(traces,) the number of each trace's task. A trace without a task is its own; traces outside get -1."""
    number: dict[object, int] = {}
    found = np.full(len(tasks), -1, np.int64)
    for place in np.flatnonzero(taking_part):
        key = tasks[place] or int(place)
        found[place] = number.setdefault(key, len(number))
    return found


def design_effect(
    holders: NDArray[np.bool_],
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    clusters: NDArray[np.int64],
) -> float:
    """The tasks' variance of the difference, as a multiple of that of independent traces; at least 1.

    Args:
        second: an empty group gives the variance of the first group's share.
    """
    ours, theirs = int(first.sum()), max(int(second.sum()), 1)
    share, other = holders[first].mean(), holders[second].sum() / theirs
    independent = share * (1 - share) / ours + other * (1 - other) / theirs
    tasks = int(clusters.max()) + 1
    if independent == 0:  # all traces of a group agree, so a task counts once
        return float((ours + second.sum()) / tasks)
    residuals = np.where(first, (holders - share) / ours, 0.0)
    residuals -= np.where(second, (holders - other) / theirs, 0.0)
    sums = np.bincount(clusters[clusters >= 0], weights=residuals[clusters >= 0], minlength=tasks)
    return max(1.0, float((sums**2).sum() * tasks / (tasks - 1) / independent))
