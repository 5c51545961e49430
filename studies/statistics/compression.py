"""Does compression predict generalisation? The observations are the probed steps of all runs of a benchmark.

The gap is success on training tasks minus success on tasks of an unseen kind. A measure of compression is one
of :data:`MEASURES`. Two analyses hold the length of training successes and their number, ``corpus``,
constant:

- the partial correlation of gap and measure: the correlation between what a linear fit on length and corpus
  leaves of each. Steps of one run are alike, so it comes without a test. It is also computed within seeds,
  with a level for each seed. The runs of a seed share their start and the tasks of their probes, so a
  correlation over all rows may come from a handful of seeds.
- the slope of the measure in :data:`MODEL` with the run as random effect (REML). All columns are
  standardised, including the gap, so a slope of 0.1 is a tenth of a deviation of the gap per deviation of the
  measure. Its test is the normal one of the mixed model.

``corpus`` is held constant because the number of training successes is the training success in the gap. By
chance alone, more successes widen the gap and lower the certificate, which is a bound from that many samples.
So the two would correlate even if all policies were the same. ``compression_null.py`` simulates
it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

MEASURES = {
    "description_length": "description length, bits per success",
    "certificate": "half-sample certificate, bits",
    "segments_per_skill": "seg/|s|",
}
HELD = {"steps": "length", "corpus": "corpus"}
"""Held constant by both analyses, column to its name in :data:`MODEL`: successes' length and number."""
BESIDE = HELD | {"step": "step"}
"""Held constant by the mixed model: also the training step."""
MODEL = f"gap ~ measure + {' + '.join(BESIDE.values())}"
"""The fixed effects of the mixed model."""
FEWEST = 12
"""The fewest rows that a model is fitted to."""


@dataclass(frozen=True)
class Prediction:
    """What a measure tells about the gap on one benchmark."""

    benchmark: str
    measure: str
    runs: int
    rows: int
    partial: float | None = None
    """The partial correlation, in [-1, 1]."""
    within_seeds: float | None = None
    """The same with a level for each seed."""
    slope: float | None = None
    """The standardised slope of the mixed model."""
    low: float | None = None
    """Lower end of the slope's 95% interval."""
    high: float | None = None
    p: float | None = None
    """Two-sided, uncorrected."""
    gap_deviation: float | None = None
    """The gap's deviation in shares; times the slope, the effect of one deviation of the measure."""


def gaps(probes: pl.DataFrame) -> pl.DataFrame:
    """One row per run and probed step with ``gap`` and the measures. Steps without a success, or with a
    missing measure, are left out.

    Args:
        probes: rows of whole splits with ``run``, ``seed``, ``step``, ``split`` and the columns of a probe.
    """
    unseen = probes.filter(pl.col("split") == "unseen").select("run", "step", unseen="success")
    rows = probes.filter(pl.col("split") == "train").join(unseen, on=("run", "step"))
    needed = ["run", "seed", "step", "gap", *MEASURES, *HELD]
    return rows.with_columns(gap=pl.col("success") - pl.col("unseen")).select(needed).drop_nulls()


def predict(benchmark: str, measure: str, rows: pl.DataFrame) -> Prediction:
    """Both analyses of a benchmark's rows of :func:`gaps`."""
    runs = rows["run"].n_unique() if rows.height else 0
    empty = Prediction(benchmark=benchmark, measure=measure, runs=runs, rows=rows.height)
    if rows.height < FEWEST or runs < 3 or rows[measure].std() == 0 or rows["gap"].std() == 0:
        return empty
    slope, low, high, p = _mixed(rows, measure)
    seeds = rows["seed"].to_dummies(drop_first=True).to_numpy()
    held = rows.select(*HELD).to_numpy()
    pair = rows["gap"].to_numpy(), rows[measure].to_numpy()
    return replace(
        empty,
        partial=partial_correlation(*pair, held),
        within_seeds=partial_correlation(*pair, np.column_stack([held, seeds])),
        slope=slope,
        low=low,
        high=high,
        p=p,
        gap_deviation=float(rows["gap"].to_numpy().std(ddof=1)),
    )


def partial_correlation(
    one: NDArray[np.float64], other: NDArray[np.float64], given: NDArray[np.float64]
) -> float:
    """The correlation between what a linear fit on the columns of ``given`` leaves of the two."""
    design = np.column_stack([np.ones(len(given)), given])
    both = np.column_stack([one, other])
    found, *_ = np.linalg.lstsq(design, both, rcond=None)
    return float(np.corrcoef((both - design @ found).T)[0, 1])


def _mixed(rows: pl.DataFrame, measure: str) -> tuple[float, float, float, float]:
    """The measure's slope, the ends of its 95% interval, and its p."""
    from statsmodels.regression.mixed_linear_model import MixedLM  # imports pandas and takes seconds

    columns = [name for name in (measure, *BESIDE) if rows[name].std()]
    design = np.column_stack([np.ones(rows.height), *(_standardised(rows[name]) for name in columns)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a random effect of variance 0 is a finding, not a failure
        fitted = MixedLM(_standardised(rows["gap"]), design, groups=rows["run"].to_numpy()).fit(reml=True)
    place = 1 + columns.index(measure)
    low, high = fitted.conf_int()[place]
    return float(fitted.fe_params[place]), float(low), float(high), float(fitted.pvalues[place])


def _standardised(values: pl.Series) -> NDArray[np.float64]:
    numbers = values.to_numpy().astype(np.float64)
    return np.asarray((numbers - numbers.mean()) / numbers.std(ddof=1))
