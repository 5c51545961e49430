"""Student's t, the normal distribution and the sign test, with scipy or without it.

scipy takes 140 MB, so the base layer of the package comes without it. Where scipy is installed, its functions
are used, so that recorded figures stay the same to the last bit. Elsewhere the functions below are used. They
agree with scipy's to at least ten digits, as a test checks.
"""

from __future__ import annotations

from functools import cache
from math import comb, erfc, exp, inf, isinf, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist
from typing import Any

_NORMAL = NormalDist()
_TINY = 1e-300
_PRECISION = 1e-16
_MOST_TERMS = 100_000


def student_cdf(degrees: float, value: float) -> float:
    """P(T <= value) of Student's t. Infinite degrees of freedom give the normal distribution."""
    if (special := _special()) is not None:
        return float(special.stdtr(degrees, value))
    return cdf(degrees, value)


def student_quantile(degrees: float, chance: float) -> float:
    """The value that a Student's t variable stays below with this chance in (0, 1)."""
    if (special := _special()) is not None:
        return float(special.stdtrit(degrees, chance))
    return quantile(degrees, chance)


def normal_quantile(chance: float) -> float:
    """The value that a standard normal variable stays below with this chance in (0, 1)."""
    if (special := _special()) is not None:
        return float(special.ndtri(chance))
    return _NORMAL.inv_cdf(chance)


def sign_test(count: int, trials: int) -> float:
    """Two-sided exact p of this many successes in fair trials; 1 without trials."""
    if not trials:
        return 1.0
    if _special() is None:
        return tails(count, trials)
    from scipy.stats import binomtest  # imported here: it takes a second, which every stage would pay

    return float(binomtest(count, trials).pvalue)


def cdf(degrees: float, value: float) -> float:
    """:func:`student_cdf` without scipy."""
    if isinf(degrees):
        return 0.5 * erfc(-value / sqrt(2))
    square = value * value
    if square < 1:  # the complement keeps its digits near 0
        tail = 0.5 - 0.5 * _incomplete_beta(0.5, degrees / 2, square / (degrees + square))
    else:
        tail = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square))
    return tail if value < 0 else 1 - tail


def quantile(degrees: float, chance: float) -> float:
    """:func:`student_quantile` without scipy, by bisection below 0, where the tail keeps its digits."""
    if isinf(degrees):
        return _NORMAL.inv_cdf(chance)
    if chance == 0.5:
        return 0.0
    tail, low = min(chance, 1 - chance), -1.0
    while cdf(degrees, low) > tail:
        low *= 2
    high = low / 2 if low < -1 else 0.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if cdf(degrees, middle) < tail else (low, middle)
    return low if chance < 0.5 else -low


def tails(count: int, trials: int) -> float:
    """:func:`sign_test` without scipy, in integers until the last division."""
    fewer = min(count, trials - count)
    return min(1.0, 2 * sum(comb(trials, few) for few in range(fewer + 1)) / (1 << trials))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), the regularised incomplete beta function, where a or b is 1/2."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    scale = exp(_log_gamma_step(max(a, b)) - log(pi) / 2 + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return scale * _continued_fraction(a, b, x) / a
    return 1 - scale * _continued_fraction(b, a, 1 - x) / b


def _log_gamma_step(a: float) -> float:
    """ln Γ(a + 1/2) - ln Γ(a). For large a a series is used, because a difference would lose digits."""
    if a < 50:
        return lgamma(a + 0.5) - lgamma(a)
    return log(a) / 2 - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)


def _continued_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of I_x(a, b) (Abramowitz and Stegun 26.5.8), by Lentz's method."""
    above, below = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    value = below
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        factor = inf
        for term in (even, odd):
            below = 1 / _away_from_0(1 + term * below)
            above = _away_from_0(1 + term / above)
            factor = above * below
            value *= factor
        if abs(factor - 1) <= _PRECISION:
            break
    return value


def _away_from_0(number: float) -> float:
    return number if abs(number) > _TINY else _TINY


@cache
def _special() -> Any:
    """scipy's module of functions; None if scipy is not installed. Importing it takes up to a second."""
    try:
        from scipy import special
    except ImportError:
        return None
    return special
