"""Two figures: the share of wins by routine of every cell and method; the predicted preference against the
change that was found. Each seed is a small dot beside the mean and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docs.figures.drawing import DOTS, GREY, INK, LINE, MUTED, Drawing
from skillpress.evaluation.study.plan import Claim
from skillpress.pipeline.files import START
from studies.critical.predictions import BASELINE, predicted
from studies.critical.results import ROUTINES, Critical
from studies.statistics.contrasts import ClaimEvidence, measured
from studies.study.results import Level

COLORS = {"+": "#2f7d4f", "0": "#5b6673", "-": "#b3261e", "": "#0b6fa4"}
"""A prediction's sign to its colour; blue where nothing is predicted."""
SIGN_WORDS = {"+": "predicted: more routines", "0": "no difference", "-": "fewer", "": "not predicted"}
WIDTH, LEFT, ROW, HEAD = 960, 170, 20, 96
LETTER = 6.2
"""Width of a letter of 12 pixels."""
BESIDE = 7
"""Pixels between a mean and its seeds."""
NO_RUNS = "no runs yet"


def draw(found: Critical) -> dict[str, str]:
    """Name of a figure to the figure."""
    return {"critical_routines": routines(found), "critical_predictions": predictions(found)}


def routines(found: Critical) -> str:
    """A panel per cell with a row per method; the line in a panel is the start's share."""
    plan = found.results.plan
    cells = list(plan.chosen())
    methods = list(dict.fromkeys(method for cell in cells for method in plan.chosen()[cell]))
    height = HEAD + ROW * len(methods) + 60
    page = Drawing(WIDTH, height, "Share of wins by routine on known tasks, for every cell and method.")
    title = f"Share of wins by routine on known tasks, after training{DOTS}"
    page.text(20, 28, title, anchor="start", bold=True)
    _legend(page, 50)
    for row, method in enumerate(methods):
        page.text(20, HEAD + ROW * row + 14, method, anchor="start", size=12)
    room = (WIDTH - LEFT - 20) / max(1, len(cells))
    for column, cell in enumerate(cells):
        _panel(page, found, cell, methods, LEFT + room * column, room - 14)
    return page.svg()


def _panel(page: Drawing, found: Critical, cell: str, methods: Sequence[str], x: float, width: float) -> None:
    bottom = HEAD + ROW * len(methods)
    page.bar(x, HEAD - 4, width, bottom - HEAD + 8, GREY)
    page.text(x + width / 2, HEAD - 12, cell, size=12, bold=True)
    page.text(x, bottom + 22, "0", size=11, color=MUTED, anchor="start")
    page.text(x + width, bottom + 22, "100%", size=11, color=MUTED, anchor="end")
    start = found.results.level(cell, START, ROUTINES)
    if start is not None:
        page.bar(x + width * start.mean - 0.5, HEAD - 4, 1, bottom - HEAD + 8, LINE)
    for row, method in enumerate(methods):
        if method not in found.results.plan.chosen()[cell]:
            continue
        y = HEAD + ROW * row + ROW / 2
        level = found.results.level(cell, method, ROUTINES)
        if level is None:
            page.text(x + width / 2, y + 4, NO_RUNS, size=10, color=MUTED)
            continue
        known = found.predictions.get(cell, {}).get(method)
        _share(page, level, x, y, width, COLORS[known.sign if known else ""])


def _share(page: Drawing, level: Level, x: float, y: float, width: float, color: str) -> None:
    if (interval := level.over_trainings) is not None:
        low, high = max(0.0, interval.low), min(1.0, interval.high)
        page.bar(x + width * low, y - 1, width * (high - low), 2, color)
    page.dot(x + width * level.mean, y, 4, color)
    page.seeds([(x + width * share, y + BESIDE) for share in level.per_seed], color)


@dataclass(frozen=True)
class _Point:
    preference: float
    sign: str
    finding: ClaimEvidence


def predictions(found: Critical) -> str:
    """A point per cell and method: the predicted preference, and the change in the share of routines compared
    with plain GRPO, with its interval."""
    page = Drawing(WIDTH, 520, "Predicted preference for the routine against the change that was found.")
    title = f"Predicted preference, and the share of routines less that of {BASELINE}{DOTS}"
    page.text(20, 28, title, anchor="start", bold=True)
    _legend(page, 50)
    points = _points(found)
    left, right, top, bottom = 90.0, WIDTH - 40.0, 90.0, 450.0
    page.bar(left, top, right - left, bottom - top, GREY)
    reach = 1.1 * max([0.1, *(abs(point.preference) for point in points)])
    middle, zero = (left + right) / 2, (top + bottom) / 2
    page.bar(middle - 0.5, top, 1, bottom - top, LINE)
    page.bar(left, zero - 0.5, right - left, 1, LINE)
    for share, words in ((-1.0, "-100"), (0.0, "0"), (1.0, "+100 points")):
        page.text(left - 8, zero - share * (bottom - top) / 2 + 4, words, anchor="end", size=11, color=MUTED)
    for at in (-reach / 1.1, 0.0, reach / 1.1):
        page.text(middle + at / reach * (right - left) / 2, bottom + 20, f"{at:+.2f}", size=11, color=MUTED)
    page.text(middle, bottom + 44, "reward of the routine less that of the shortcut", size=12, color=MUTED)
    if not points:
        page.text(middle, zero - 12, "no predictions with runs yet", size=12, color=INK)
    for point in points:
        x = middle + point.preference / reach * (right - left) / 2
        color, of = COLORS[point.sign], point.finding
        half = (bottom - top) / 2
        if of.low is not None and of.high is not None:
            low, high = max(-1.0, of.low), min(1.0, of.high)
            page.bar(x - 1, zero - half * high, 2, half * (high - low), color)
        assert of.difference is not None
        page.dot(x, zero - half * of.difference, 4.5, color)
        page.seeds([(x + BESIDE, zero - half * each) for each in of.per_seed], color)
    return page.svg()


def _points(found: Critical) -> list[_Point]:
    """Cells and methods with a prediction and with runs of the method and of the baseline."""
    points = []
    for cell, methods in found.results.plan.chosen().items():
        for method in methods:
            claim = Claim(
                question="",
                family="",
                benchmark=cell,
                first=BASELINE,
                second=method,
                expect="differs",
                outcome=ROUTINES,
            )
            known = predicted(claim, found.predictions)
            if known is None or method == BASELINE:
                continue
            finding = measured(claim, found.results.pairs(claim, ROUTINES), 0, 0.0)
            if finding.difference is not None:
                points.append(_Point(known.preference, known.sign, finding))
    return points


def _legend(page: Drawing, y: float) -> None:
    x = 26.0
    for sign, words in SIGN_WORDS.items():
        page.dot(x, y, 4.5, COLORS[sign])
        page.text(x + 12, y + 4, words, anchor="start", size=12, color=MUTED)
        x += 50 + LETTER * len(words)
