"""Success while training: a panel per method with each seed's recorded steps as dots, their running mean, and
the mean over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import polars as pl

from docs.figures.drawing import GREY, INK, LINE, MUTED, STRONG, Drawing
from skillpress.reports.report.smoothing import running_mean, window
from skillpress.reports.report.theme import whole_ticks
from studies.language_model.names import BENCHMARK, NAMES
from studies.study.results import Results

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 960, 400, 60, 74, 330, 50
SHADES = ("#b45309", "#2f7d4f", "#6d4aa8")
"""A seed's colour."""

Curve = Sequence[tuple[float, float]]
"""(step, success) of every step."""


def draw(results: Results) -> str:
    """The figure."""
    page = Drawing(
        WIDTH, HEIGHT, "Success on training puzzles while a language model trains, by method and seed."
    )
    panels = {
        words: {
            seed: raw(run.curve) for seed, run in sorted(results.runs.get((BENCHMARK, method), {}).items())
        }
        for method, words in NAMES.items()
    }
    covered = window(min((len(curve) for curves in panels.values() for curve in curves.values()), default=0))
    title = "Success on training puzzles, percent; a dot: 64 episodes of a step, every second step"
    page.text(20, 28, f"{title}; a line: the mean of {covered}", anchor="start", bold=True)
    width = (WIDTH - LEFT - 20 - GAP * (len(NAMES) - 1)) / len(NAMES)
    for place, (words, curves) in enumerate(panels.items()):
        _panel(page, words, curves, LEFT + place * (width + GAP), width)
    return page.svg()


def raw(curve: Mapping[str, Sequence[float | None]]) -> Curve:
    """The recorded steps that have a success."""
    return [
        (step, success)
        for step, success in zip(curve["step"], curve["success"], strict=True)
        if step is not None and success is not None
    ]


def means(curve: Curve) -> Curve:
    """The curve's running mean over at most a fifth of its points, at the same steps."""
    smooth = running_mean(pl.Series([success for _, success in curve], dtype=pl.Float64), window(len(curve)))
    return [(step, success) for (step, _), success in zip(curve, smooth.tolist(), strict=True)]


def _panel(page: Drawing, words: str, curves: Mapping[int, Curve], x: float, width: float) -> None:
    page.bar(x, TOP, width, BOTTOM - TOP, GREY)
    page.text(x + width / 2, TOP - 12, words, bold=True)
    last = max((step for curve in curves.values() for step, _ in curve), default=1.0)

    def across(step: float) -> float:
        return x + width * step / (last * 1.04)

    def up(success: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * success

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        page.bar(x, up(share) - 0.5, width, 1, LINE if share == 0 else "#e3e6ea")
        page.text(x - 8, up(share) + 4, f"{100 * share:.0f}", anchor="end", size=11, color=MUTED)
    if not curves:
        page.text(x + width / 2, (TOP + BOTTOM) / 2, "no runs yet", size=12, color=MUTED)
        return
    apart = whole_ticks(0, last)
    for step in range(0, int(last) + 1, apart):
        page.text(across(step), BOTTOM + 18, str(step), size=11, color=MUTED)
    page.text(x + width / 2, BOTTOM + 36, "step", size=12, color=MUTED)
    for place, (seed, curve) in enumerate(curves.items()):
        color = SHADES[place % len(SHADES)]
        for at_step, success in curve:
            page.dot(across(at_step), up(success), 2.2, color)
        page.line([(across(at_step), up(success)) for at_step, success in means(curve)], color)
        page.dot(x + 6 + 90 * place, BOTTOM + 54, 4, color)
        page.text(x + 16 + 90 * place, BOTTOM + 58, f"seed {seed}", anchor="start", size=12, color=MUTED)
    if len(curves) > 1:
        smooth = map(means, curves.values())
        together = [(column[0][0], fmean(y for _, y in column)) for column in zip(*smooth, strict=False)]
        page.line([(across(at_step), up(success)) for at_step, success in together], STRONG, width=4)
        at = x + 6 + 90 * len(curves)
        page.line([(at - 6, BOTTOM + 54), (at + 12, BOTTOM + 54)], STRONG, width=4)
        page.text(at + 18, BOTTOM + 58, "mean", anchor="start", size=12, color=INK)
