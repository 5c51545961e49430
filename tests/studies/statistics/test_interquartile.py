"""Interquartile means against SciPy's trimmed mean, and their intervals against a direct computation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import trim_mean

from studies.statistics.divergence import LOSS
from studies.statistics.interquartile import interquartile, interquartile_mean


@pytest.mark.parametrize("shape", [(3,), (8,), (5, 8), (2, 3, 7)])
def test_it_is_the_mean_without_a_quarter_at_each_end(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    assert interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25, axis=-1))


def test_runs_of_all_cells_are_trimmed_together() -> None:
    cells = np.random.default_rng(1).normal(size=(5, 8)) + np.arange(5)[:, None]
    assert interquartile(cells.tolist())[0] == pytest.approx(trim_mean(cells, 0.25, axis=None))


def test_the_interval_is_that_of_all_ways_to_draw_each_cells_runs_again() -> None:
    """Two cells of four runs have 256 · 256 ways: the percentiles of their trimmed means."""
    cells = np.random.default_rng(4).normal(size=(2, 4)).tolist()
    ways = [first + second for first, second in product(*(product(runs, repeat=4) for runs in cells))]
    exact = np.quantile(trim_mean(np.array(ways), 0.25, axis=1), [0.025, 0.975])
    assert interquartile(cells)[1:] == pytest.approx(exact, abs=0.03)


def test_a_run_of_eight_that_diverges_hardly_moves_it() -> None:
    runs = np.random.default_rng(2).normal(0.0, 0.5, 8)
    diverged = np.append(runs[1:], -LOSS)
    assert abs(interquartile([diverged.tolist()])[0] - interquartile([runs.tolist()])[0]) < 0.3
    assert abs(diverged.mean() - runs.mean()) > 2.5


@pytest.mark.parametrize(("runs", "expected"), [(8, 0.93), (5, 0.90)])
def test_few_runs_hold_the_truth_a_little_too_seldom(runs: int, expected: float) -> None:
    studies = np.random.default_rng(3).normal(size=(400, runs))
    ends = np.array([interquartile([found.tolist()])[1:] for found in studies])
    assert np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0)) == pytest.approx(expected, abs=0.03)
