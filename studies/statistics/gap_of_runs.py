"""Does compression of training successes predict the gap between known and unseen tasks, over runs?

One observation per run: its gap in success, and the measures of its last probe. Runs of one seed share their
start and their tasks, so the seed is the unit: the correlation is computed over the runs of each seed, and
the interval is Student's over the seeds' correlations, by Fisher's z. Three scopes:

- ``one cell``: over the methods of a cell;
- ``within cells``: over all runs, with a level for each cell;
- ``across cells``: over the cells' means.

The first two hold the length and the number of training successes constant, as question 6 of the study does
(``compression.py`` says why). Cells are too few to hold anything constant across them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import atanh, sqrt, tanh
from statistics import mean, stdev

import numpy as np
import polars as pl

from skillpress.core.distributions import student_cdf, student_quantile
from studies.statistics.compression import HELD, MEASURES, partial_correlation

WITHIN, ACROSS = "within cells", "across cells"
SMALL = 0.3
"""A correlation below this explains less than a tenth of the gap's variance."""
FREE = 3
"""Rows beyond the constant columns without which a seed's correlation says nothing."""
MOST = 0.999999
"""Correlations of 1 have no z."""
COLUMNS = ("cell", "seed", "gap", *MEASURES, *HELD)


@dataclass(frozen=True)
class Agreement:
    """The correlation of gap and measure in one scope."""

    scope: str
    """A cell, or one of the two scopes over all cells."""
    measure: str
    runs: int
    seeds: int = 0
    """Seeds with enough runs."""
    correlation: float | None = None
    """Over seeds, in [-1, 1]; above 0 if more bits or segments go with a wider gap."""
    low: float | None = None
    """Lower end of the 95% interval over seeds."""
    high: float | None = None
    p: float | None = None
    """Two-sided, uncorrected."""


def agreements(rows: pl.DataFrame) -> Iterator[Agreement]:
    """All scopes and measures.

    Args:
        rows: a row per run with :data:`COLUMNS`; rows with a missing value are left out.
    """
    known = rows.select(COLUMNS).drop_nulls()
    cells = known["cell"].unique().sort().to_list()
    for measure in MEASURES:
        for cell in cells:
            mine = known.filter(pl.col("cell") == cell)
            yield _over_seeds(cell, measure, mine, mine.height)
        if len(cells) > 1:
            yield _over_seeds(WITHIN, measure, known, known.height)
            means = known.group_by("cell", "seed").mean().sort("cell", "seed")
            yield _over_seeds(ACROSS, measure, means, known.height)


def _over_seeds(scope: str, measure: str, rows: pl.DataFrame, runs: int) -> Agreement:
    found = Agreement(scope=scope, measure=measure, runs=runs)
    each = [_of_seed(scope, measure, mine) for mine in rows.partition_by("seed", maintain_order=True)]
    values = [atanh(max(-MOST, min(MOST, value))) for value in each if value is not None]
    if not values:
        return found
    middle = mean(values)
    found = replace(found, seeds=len(values), correlation=tanh(middle))
    if len(values) < 2 or not (error := stdev(values) / sqrt(len(values))):
        return found
    half = student_quantile(len(values) - 1, 0.975) * error
    p = 2 * student_cdf(len(values) - 1, -abs(middle) / error)
    return replace(found, low=tanh(middle - half), high=tanh(middle + half), p=p)


def _of_seed(scope: str, measure: str, rows: pl.DataFrame) -> float | None:
    """The correlation over the runs of one seed; None if they are too few, or do not differ."""
    held = [rows[name].to_numpy() for name in HELD if scope != ACROSS]
    if scope == WITHIN:
        held += list(rows["cell"].to_dummies(drop_first=True).to_numpy().T)
    given = np.column_stack(held).astype(np.float64) if held else np.empty((rows.height, 0))
    if rows.height < 1 + given.shape[1] + FREE or not rows[measure].std() or not rows["gap"].std():
        return None
    found = partial_correlation(rows["gap"].to_numpy(), rows[measure].to_numpy(), given)
    return found if np.isfinite(found) else None
