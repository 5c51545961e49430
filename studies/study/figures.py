"""One figure per question: every claim's difference with its interval and its seeds, the margin as a grey
band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docs.figures.drawing import DOTS, GREY, INK, LINE, MUTED, Drawing
from studies.statistics.behavior_signs import MISSING, OPEN, OTHER, SAME
from studies.statistics.compression import MEASURES
from studies.study.paper import SCALES, directions
from studies.study.results import Results

COLORS = {"countdown": "#0b6fa4", "cooking": "#b45309", "alfworld": "#2f7d4f"}
LEFT, WIDTH, ROW, TOP = 470, 960, 24, 64
"""Room for the words, the whole, a row's height, and the head's."""


@dataclass(frozen=True)
class Bar:
    """A row of a figure."""

    words: str
    benchmark: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float = 0.0
    seeds: tuple[float, ...] = ()


def draw(results: Results, question: str) -> str:
    """The question's figure."""
    title = f"{question.split('_')[0].upper()}. {results.plan.questions[question].title}"
    if question.startswith("q6"):
        bars = [
            Bar(MEASURES[one.measure], one.benchmark, one.slope, one.low, one.high)
            for one in results.predictions(question)
        ]
        return forest(title, "slope of the gap, standardised", bars, 1.0)
    if question.startswith("q7"):
        return counts(title, results)
    bars = [
        Bar(
            f"{found.claim.second} less {found.claim.first}",
            found.claim.benchmark,
            found.difference,
            found.low,
            found.high,
            found.margin,
            found.per_seed,
        )
        for found in results.findings(question)
        if not found.claim.of_class
    ]
    return forest(title, f"difference, points (95%, other trainings and other tasks){DOTS}", bars, 100.0)


def forest(title: str, axis: str, bars: Sequence[Bar], factor: float) -> str:
    """Dots and intervals on a common axis; ``factor`` from a value to the axis' unit."""
    page = Drawing(WIDTH, TOP + ROW * len(bars) + 56, f"{title} Each claim's difference with its interval.")
    page.text(20, 28, title, anchor="start", bold=True)
    shown = [end for bar in bars for end in (bar.value, bar.low, bar.high, *bar.seeds) if end is not None]
    ends = [abs(factor * end) for end in shown]
    reach = 1.1 * max([1.0, *ends])
    scale = (WIDTH - 30 - LEFT) / (2 * reach)
    middle = LEFT + scale * reach
    bottom = TOP + ROW * len(bars)
    for number, bar in enumerate(bars):
        y = TOP + number * ROW + ROW / 2
        color = COLORS.get(bar.benchmark, INK)
        page.text(20, y + 4, f"{bar.benchmark}: {bar.words}", anchor="start", size=12, color=color)
        if bar.value is None:
            page.text(middle + 8, y + 4, "no runs yet", anchor="start", size=11, color=MUTED)
            continue
        half = scale * min(reach, factor * bar.margin)
        page.bar(middle - half, y - ROW / 2, 2 * half, ROW, GREY)
        if bar.low is not None and bar.high is not None:
            page.bar(
                middle + scale * factor * bar.low, y - 1, scale * factor * (bar.high - bar.low), 2, color
            )
        page.dot(middle + scale * factor * bar.value, y, 4.5, color)
        page.seeds([(middle + scale * factor * seed, y + 8) for seed in bar.seeds], color)
    page.bar(middle - 0.5, TOP - 6, 1, bottom - TOP + 12, LINE)
    for at in (-reach / 1.1, 0.0, reach / 1.1):
        page.text(middle + scale * at, bottom + 22, f"{at:+.1f}" if at else "0", size=12, color=MUTED)
    page.text(middle, bottom + 42, axis, size=12, color=MUTED)
    return page.svg()


def counts(title: str, results: Results) -> str:
    """Question 7: for each table and scale, how many differences have which sign."""
    kinds = {SAME: "#2f7d4f", OTHER: "#b3261e", OPEN: "#a3abb5", MISSING: "#e3e6ea"}
    rows = []
    for ending, words in SCALES.items():
        found = directions(results, ending)
        for table in sorted({sign.table for sign in found}):
            mine = [sign.direction for sign in found if sign.table == table]
            rows.append((f"Table {table}, {words}", {kind: mine.count(kind) for kind in kinds}))
    page = Drawing(WIDTH, TOP + ROW * len(rows) + 56, f"{title} Counts of differences by their sign.")
    page.text(20, 28, title, anchor="start", bold=True)
    unit = (WIDTH - 30 - LEFT) / max([1, *(sum(row.values()) for _, row in rows)])
    for number, (words, row) in enumerate(rows):
        x, y = float(LEFT), TOP + number * ROW
        page.text(20, y + 16, words, anchor="start", size=12)
        for kind, color in kinds.items():
            page.bar(x, y + 4, unit * row[kind], ROW - 8, color)
            x += unit * row[kind]
    if not rows:
        page.text(20, TOP + 20, "no runs yet", anchor="start", size=12, color=MUTED)
    for place, (kind, color) in enumerate(kinds.items()):
        page.bar(20 + place * 170, TOP + ROW * len(rows) + 30, 12, 12, color)
        page.text(38 + place * 170, TOP + ROW * len(rows) + 41, kind, anchor="start", size=12, color=MUTED)
    return page.svg()
