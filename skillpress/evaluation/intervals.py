"""Wilson's 95% interval for a share (Wilson 1927).

It stays inside [0, 1] and covers well at shares near 0 and 1, where the textbook interval fails.
The trials are *tasks*, not episodes: several episodes of one task are not independent, and with
n = tasks the interval is never narrower than it should be (the variance of a mean of task means
is at most p(1 - p) / n).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054
"""The 97.5% point of the standard normal distribution."""


@dataclass(frozen=True)
class Interval:
    """A 95% confidence interval."""

    low: float
    high: float


def wilson(share: float, trials: int) -> Interval:
    """The interval of a ``share`` in [0, 1] seen in ``trials`` independent trials.

    Raises:
        ValueError: no trials, or a share outside [0, 1].
    """
    if trials < 1 or not 0 <= share <= 1:
        raise ValueError(f"a share in [0, 1] of at least one trial is needed, got {share} of {trials}")
    spread = Z_95**2 / trials
    center = (share + spread / 2) / (1 + spread)
    half = Z_95 * sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return Interval(max(0.0, center - half), min(1.0, center + half))
