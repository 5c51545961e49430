"""Compression against the gap over runs, in records whose answers are known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp

from studies.statistics.compression import MEASURES
from studies.statistics.gap_of_runs import ACROSS, COLUMNS, WITHIN, Agreement, agreements

RUNS = 8


def rows(cells: dict[str, float], seeds: int = 4, slope: float = 0.0, noise: float = 1.0) -> pl.DataFrame:
    """Runs of cells whose levels of gap and measure are given; in a cell the gap follows the measure by
    ``slope``, with noise. Length and number of successes do not vary."""
    random, found = np.random.default_rng(0), []
    for cell, level in cells.items():
        for seed in range(seeds):
            for _ in range(RUNS):
                measure = level + random.normal()
                gap = level + slope * (measure - level) + noise * random.normal()
                found.append(
                    {"cell": cell, "seed": seed, "gap": gap, "steps": 7.0, "corpus": 100.0}
                    | dict.fromkeys(MEASURES, measure)
                )
    return pl.DataFrame(found).select(COLUMNS)


def of(found: pl.DataFrame, scope: str) -> Agreement:
    return next(one for one in agreements(found) if (one.scope, one.measure) == (scope, "certificate"))


def test_in_one_cell_it_is_the_mean_of_the_seeds_correlations_with_its_t_interval() -> None:
    made = rows({"one": 0.0}, slope=0.7)
    each = [np.corrcoef(mine["gap"], mine["certificate"])[0, 1] for mine in made.partition_by("seed")]
    test = ttest_1samp(np.arctanh(each), 0)
    low, high = np.tanh(test.confidence_interval())
    found = of(made, "one")
    assert found.correlation == pytest.approx(np.tanh(np.arctanh(each).mean()))
    assert (found.low, found.high, found.p) == pytest.approx((low, high, test.pvalue))
    assert (found.runs, found.seeds) == (4 * RUNS, 4)


def test_what_differs_between_cells_alone_is_seen_across_them_and_not_within() -> None:
    made = rows({"one": 0.0, "two": 50.0, "three": 100.0, "four": 150.0})
    across, within = of(made, ACROSS), of(made, WITHIN)
    assert across.correlation is not None and across.correlation > 0.99
    assert within.low is not None and within.high is not None and within.low < 0 < within.high


def test_what_holds_in_every_cell_is_seen_within_them() -> None:
    within = of(rows({"one": 0.0, "two": 50.0}, slope=-2.0), WITHIN)
    assert within.high is not None and within.high < -0.5


def test_the_number_of_successes_is_held_constant() -> None:
    """Gap and measure both follow the number of successes and nothing else."""
    made = rows({"one": 0.0}).with_columns(corpus=pl.Series(np.random.default_rng(1).normal(size=32)))
    followed = made.with_columns(
        pl.col("gap") + 50 * pl.col("corpus"), pl.col("certificate") + 50 * pl.col("corpus")
    )
    found = of(followed, "one")
    assert found.correlation is not None and abs(found.correlation) < 0.7
    held = of(made, "one")
    assert found.correlation == pytest.approx(held.correlation)


def test_too_few_runs_and_runs_that_do_not_differ_give_nothing() -> None:
    few = rows({"one": 0.0}).group_by("seed", maintain_order=True).head(5).select(COLUMNS)
    alike = rows({"one": 0.0}).with_columns(certificate=1.0)
    assert (of(few, "one").correlation, of(alike, "one").correlation) == (None, None)
    assert of(few, "one").runs == 20
    assert not list(agreements(few.head(0)))


def test_a_run_with_a_missing_measure_is_left_out() -> None:
    made = rows({"one": 0.0})
    holes = made.with_columns(certificate=pl.when(pl.int_range(pl.len()) > 0).then("certificate"))
    assert of(holes, "one").runs == made.height - 1
