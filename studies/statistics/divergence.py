"""What a training that diverges does to an interval over seeds.

Of the critical experiment's trainings with a constant penalty one in eight lost 24 points in `longer`; the
others' differences scatter by half a point. Student's interval rests on the scatter that it sees. If none of
its seeds diverged, it is narrow and lies beside the mean over all trainings; ``coverage`` simulates how often
it holds this mean. ``sign_flips_of_seeds`` has its level for any distribution.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skillpress.core.distributions import student_quantile

RATE, LOSS = 1 / 8, 24.0
"""How often a training diverges, and the points that it then loses."""
NOMINAL = 0.95
DRAWS = 20_000
"""Simulated studies of a coverage, whose standard error then is at most 0.4%."""


def coverage(seeds: int, scatter: float, rate: float = RATE, loss: float = LOSS) -> float:
    """The share of studies in which Student's 95% interval holds the true mean, -``rate`` · ``loss``.

    Args:
        seeds: differences of a study, each N(0, ``scatter``), and ``loss`` less with chance ``rate``.
        scatter: standard deviation between seeds that do not diverge, in points.
    """
    draws = np.random.default_rng(seeds)
    shape = (DRAWS, seeds)
    found = draws.normal(0.0, scatter, shape) - loss * (draws.random(shape) < rate)
    half = student_quantile(seeds - 1, (1 + NOMINAL) / 2) * found.std(axis=1, ddof=1) / np.sqrt(seeds)
    return float((np.abs(found.mean(axis=1) + rate * loss) <= half).mean())


def seeds_to_cover(known: Mapping[int, float], wanted: float) -> int | None:
    """The fewest seeds of ``known`` from which on every coverage is ``wanted`` at least; None if the last is
    not. A coverage may fall with more seeds: the mean over few of them takes few values.

    Args:
        known: number of seeds to coverage.
    """
    found = None
    for seeds in sorted(known, reverse=True):
        if known[seeds] < wanted:
            break
        found = seeds
    return found
