"""Interquartile means with a stratified bootstrap (Agarwal et al. 2021, as in their library rliable).

The mean of the middle half of all runs over all cells. Runs that diverge do not move it while fewer than a
quarter do. The interval resamples the runs of each cell by themselves. It says what other trainings of the
same cells would give, and does not cover other tasks. Percentiles of few runs scatter too little: of eight
normal runs they hold the truth in 93% of studies in place of 95%, of five in 90%.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillpress.evaluation.statistics.bootstrap import RESAMPLES


def interquartile_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """[...] the mean of [..., runs] without the lowest and the highest quarter, both rounded down."""
    runs = values.shape[-1]
    middle = np.sort(values, axis=-1)[..., runs // 4 : runs - runs // 4]
    return np.asarray(middle.mean(axis=-1))


def interquartile(cells: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The interquartile mean of all runs, and the ends of its 95% interval.

    Args:
        cells: each cell's runs; a cell is a stratum.
    """
    values = [np.asarray(runs, np.float64) for runs in cells]
    draws = np.random.default_rng(0)
    again = [runs[draws.integers(len(runs), size=(RESAMPLES, len(runs)))] for runs in values]
    means = interquartile_mean(np.concatenate(again, axis=1))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(interquartile_mean(np.concatenate(values))), float(low), float(high)
