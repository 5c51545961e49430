"""The running means of learning curves, short enough that a line still follows its points."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

LONGEST = 9
"""A running mean covers at most this many points."""
SHARE = 5
"""A running mean covers at most one in this many of a curve's points."""


def window(points: int) -> int:
    """The points that each mean covers: an odd number of at most ``LONGEST`` and a fifth of all; 1 means that
    nothing is smoothed."""
    most = min(LONGEST, points // SHARE)
    return max(1, most - (most + 1) % 2)


def running_mean(values: pl.Series, width: int) -> NDArray[np.float64]:
    """[points] the centred mean over ``width`` points, near both ends over those that exist; NaN where all of
    them are null."""
    smooth = values.cast(pl.Float64).rolling_mean(width, min_samples=1, center=True)
    return smooth.round(12).to_numpy()  # running sums leave rounding errors, and equal values must tie
