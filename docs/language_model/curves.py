"""Success while training: a panel per method, a line of dots per seed, and the mean over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from docs.figures.drawing import GREY, INK, LINE, MUTED, STRONG, Drawing
from docs.language_model.names import BENCHMARK, NAMES
from docs.study.results import Results

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 960, 400, 60, 74, 330, 50
STEPS = 5
"""Steps that a point is the mean of, as a step has few puzzles. The record has every second step."""
SHADES = ("#b45309", "#2f7d4f", "#6d4aa8")
"""A seed's colour."""

Curve = Sequence[tuple[float, float]]
"""(last step, mean success) of so many steps each."""


def draw(results: Results) -> str:
    """The figure."""
    page = Drawing(
        WIDTH, HEIGHT, "Success on training puzzles while a language model trains, by method and seed."
    )
    title = f"Success on training puzzles, percent; a point: {STEPS} steps of 64 episodes, every second step"
    page.text(20, 28, title, anchor="start", bold=True)
    width = (WIDTH - LEFT - 20 - GAP * (len(NAMES) - 1)) / len(NAMES)
    for place, (method, words) in enumerate(NAMES.items()):
        runs = results.runs.get((BENCHMARK, method), {})
        curves = {seed: means(run.curve) for seed, run in sorted(runs.items())}
        _panel(page, words, curves, LEFT + place * (width + GAP), width)
    return page.svg()


def means(curve: Mapping[str, Sequence[float | None]]) -> Curve:
    """The mean success of every ``STEPS`` recorded steps, at the last of them; of a rest, nothing."""
    found = [
        (step, success)
        for step, success in zip(curve["step"], curve["success"], strict=True)
        if step is not None and success is not None
    ]
    blocks = [found[at : at + STEPS] for at in range(0, len(found) - STEPS + 1, STEPS)]
    return [(block[-1][0], fmean(success for _, success in block)) for block in blocks]


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
    for step in sorted({step for curve in curves.values() for step, _ in curve}):
        page.text(across(step), BOTTOM + 18, f"{step:g}", size=11, color=MUTED)
    page.text(x + width / 2, BOTTOM + 36, "step", size=12, color=MUTED)
    for place, (seed, curve) in enumerate(curves.items()):
        color = SHADES[place % len(SHADES)]
        for step, success in curve:
            page.dot(across(step), up(success), 3.5, color)
        page.dot(x + 6 + 90 * place, BOTTOM + 54, 4, color)
        page.text(x + 16 + 90 * place, BOTTOM + 58, f"seed {seed}", anchor="start", size=12, color=MUTED)
    if len(curves) > 1:
        together = [
            (column[0][0], fmean(y for _, y in column)) for column in zip(*curves.values(), strict=False)
        ]
        page.line([(across(step), up(success)) for step, success in together], STRONG)
        at = x + 6 + 90 * len(curves)
        page.line([(at - 6, BOTTOM + 54), (at + 12, BOTTOM + 54)], STRONG)
        page.text(at + 18, BOTTOM + 58, "mean", anchor="start", size=12, color=INK)
