"""What a training that diverges does to statistics over seeds: a test that survives it, and an interval.

Of the critical experiment's trainings with a constant penalty one in eight lost 24 points in `longer`; the
others' differences scatter by half a point. Student's interval rests on the scatter that it sees. If none of
its seeds diverged, it is narrow and lies beside the mean over all trainings; ``coverage`` simulates how often
it holds this mean. The sign test of ``sign_flips_of_seeds`` has its level for any distribution: if a method
changes nothing, every difference of a pair of trainings is as likely with the other sign (Fisher 1935).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skillpress.core.distributions import student_quantile

RATE, LOSS = 1 / 8, 24.0
"""How often a training diverges, and the points that it then loses."""
NOMINAL = 0.95
DRAWS = 20_000
"""Simulated studies of a coverage, whose standard error then is at most 0.4%."""
MOST_FLIPPED = 20
"""The most seeds of which all choices of signs are counted: a million."""


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
