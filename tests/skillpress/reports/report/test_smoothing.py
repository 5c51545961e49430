"""A smoothed line follows its points: they are behind it, and each mean covers a fifth of them at most."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.evaluation.analysis.drift import drift
from skillpress.reports.report import dictionary_figures
from skillpress.reports.report.data import Curve, ReportData
from skillpress.reports.report.figures import METRICS, budget, learning_curve, smoothing, success_lengths
from skillpress.reports.report.page import render_report
from skillpress.reports.report.smoothing import LONGEST, running_mean, window
from skillpress.reports.report.theme import Look, looks, whole_ticks
from tests.skillpress.reports.report.conftest import HISTORY

LOOKS = {"segcost": Look("#0b6fa4", "solid")}


def training(*success: float | None, seed: int = 0) -> Curve:
    steps = [float(step) for step in range(1, len(success) + 1)]
    return Curve("segcost", pl.DataFrame({"step": steps, "success": success}), seed)


@given(st.integers(0, 10_000))
def test_a_mean_covers_an_odd_number_of_points_and_a_fifth_of_them_at_most(points: int) -> None:
    width = window(points)
    assert width % 2 == 1 and 1 <= width <= LONGEST
    assert width == 1 or 5 * width <= points


@pytest.mark.parametrize(("points", "width"), [(1, 1), (5, 1), (14, 1), (15, 3), (45, 9), (150, 9)])
def test_windows_grow_with_the_training(points: int, width: int) -> None:
    assert window(points) == width


def test_a_training_of_five_steps_is_drawn_as_it_was() -> None:
    """Means over nine steps had made one and the same value of them."""
    values = (0.1, 0.5, 0.2, 0.9, 0.4)
    points, line = learning_curve([training(*values)], METRICS[0], LOOKS).data
    assert tuple(points.y) == tuple(line.y) == values


def test_behind_a_smoothed_line_is_each_step_of_each_seed() -> None:
    seeds = [[float((step * 7 + seed) % 5) for step in range(30)] for seed in range(2)]
    figure = learning_curve([training(*s, seed=n) for n, s in enumerate(seeds)], METRICS[0], LOOKS)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert [list(trace.y) for trace in points] == seeds
    assert [list(trace.x) for trace in points] == [list(range(1, 31))] * 2
    assert list(figure.data[:2]) == points, "behind: they are drawn first"


def test_steps_without_a_value_have_no_point_and_do_not_break_the_mean() -> None:
    figure = learning_curve([training(*[0.5, None] * 10)], METRICS[0], LOOKS)
    assert (figure.data[-1].y == 0.5).all()
    assert running_mean(pl.Series([None, None, 1.0]), 1).tolist()[2] == 1.0


def test_the_shortest_run_of_a_page_decides_and_the_page_says_how_many_steps(experiment: ReportData) -> None:
    assert smoothing([training(*[0.5] * 150), training(*[0.5] * 20)]) == 3
    page = render_report(experiment)  # 120 steps
    assert "running mean over 9 steps" in page and "Each point is one training step" in page
    experiment = ReportData(**{**vars(experiment), "curves": [training(0.1, 0.2, 0.3)]})
    assert "nothing is smoothed" in render_report(experiment)


@pytest.mark.parametrize(
    ("first", "last", "distance"), [(1, 1, 1), (1, 4, 1), (1, 8, 1), (1, 9, 2), (1, 40, 10), (1, 150, 50)]
)
def test_steps_have_whole_ticks_and_eight_at_most(first: int, last: int, distance: int) -> None:
    assert whole_ticks(first, last) == distance


@given(st.integers(0, 10), st.integers(0, 100_000))
def test_ticks_are_never_between_two_steps(first: int, length: int) -> None:
    distance = whole_ticks(first, first + length)
    assert isinstance(distance, int) and re.fullmatch("[125]0*", str(distance))


def test_each_figure_that_counts_steps_has_whole_ticks(experiment: ReportData) -> None:
    styles = looks(experiment.policies)
    figures = [
        learning_curve(experiment.curves, METRICS[0], styles),
        budget(experiment.policies, styles),
        success_lengths(experiment.policies, styles),
        dictionary_figures.similarity(drift(HISTORY, None)),
        dictionary_figures.lifetimes(HISTORY),
    ]
    for figure in figures:
        assert isinstance(figure.layout.xaxis.dtick, int), figure.layout.xaxis.title.text
