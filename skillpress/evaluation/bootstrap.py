"""What holds for these trained policies: tasks are resampled, the weights stay as they are.

The interval says how far the figure would move on other tasks of the same kind. It says nothing about
another training: that is ``trainings``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000


def bootstrap(values: Sequence[float] | NDArray[np.float64], seed: int) -> tuple[float, float, float]:
    """(low, high, p) of the mean of one value per task, resampling tasks; p is that of a mean of 0.

    A resample's mean depends only on how often each distinct value was drawn, so those counts are
    drawn (multinomial) instead of the tasks. p is twice the smaller share of resampled means on
    either side of 0, counting the observed sample as one of them (Davison and Hinkley 1997, 4.2.3).
    """
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    total = int(counts.sum())
    draws = np.random.default_rng(seed).multinomial(total, counts / total, size=RESAMPLES)
    means = draws @ distinct / total
    low, high = np.quantile(means, [0.025, 0.975])
    tail = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return float(low), float(high), min(1.0, 2 * (tail + 1) / (RESAMPLES + 1))
