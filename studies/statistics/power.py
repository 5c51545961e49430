"""How many seeds show which difference: the power of the paired t test over seeds.

The differences of n seeds scatter with deviation s. Then a true difference d is found with probability
P(|t'| > t_crit). Here t' is noncentral t with n - 1 degrees of freedom and noncentrality d sqrt(n) / s (Cohen
1988, ch. 2).
"""

from __future__ import annotations

from math import sqrt

LEVEL = 0.05
MOST_SEEDS = 1000


def power(difference: float, deviation: float, seeds: int, level: float = LEVEL) -> float:
    """The probability that the two-sided test at ``level`` finds the difference."""
    from scipy.stats import nct, t  # a second to import

    critical = t.ppf(1 - level / 2, seeds - 1)
    shift = difference * sqrt(seeds) / deviation
    return float(nct.sf(critical, seeds - 1, shift) + nct.cdf(-critical, seeds - 1, shift))


def seeds_needed(difference: float, deviation: float, level: float = LEVEL, wanted: float = 0.8) -> int:
    """The fewest seeds that find the difference with probability ``wanted``.

    Raises:
        ValueError: more than ``MOST_SEEDS`` would be needed.
    """
    for seeds in range(2, MOST_SEEDS + 1):
        if power(difference, deviation, seeds, level) >= wanted:
            return seeds
    raise ValueError(f"a difference of {difference} with deviation {deviation} needs over {MOST_SEEDS} seeds")
