"""How well planted routines are found, by noise and by way of searching; from the benchmark's record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docs.figures.drawing import INK, LINE, MUTED, STRONG, Drawing

RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "planted_skills.json"
SESSIONS = 200
WAYS = {
    "ours": ("skills --write", STRONG),
    "ours_without_outcomes": ("without outcomes", "#2f7d4f"),
    "ngrams": ("most frequent sequences", "#b45309"),
    "common_subsequence": ("longest common subsequences", "#6d4aa8"),
}
"""A way in the record to its name and color."""
MEASURES = {"precision": "precision", "recall": "recall", "exact": "recall, exact"}
TOP, HEIGHT, WIDTH = 40, 170, 196


def draw() -> str:
    """The picture."""
    rows = [row for row in json.loads(RECORD.read_text())["rows"] if row["sessions"] == SESSIONS]
    page = Drawing(760, 292, _about(rows))
    for number, measure in enumerate(MEASURES):
        _panel(page, 44 + number * (WIDTH + 46), measure, rows)
    for number, (name, color) in enumerate(WAYS.values()):
        left = (44, 174, 324, 524)[number]
        page.line([(left, 272), (left + 18, 272)], color, 3)
        page.text(left + 24, 276, name, size=12, anchor="start", color=INK)
    return page.svg()


def _about(rows: Sequence[dict[str, Any]]) -> str:
    """The first and the last mean of every line."""
    told = []
    for measure in MEASURES:
        for way, (name, _) in WAYS.items():
            means = [row[measure]["mean"] for row in rows if row["way"] == way]
            told.append(f"{measure} of {name} {means[0]:.2f} to {means[-1]:.2f}")
    return f"Planted routines in {SESSIONS} scripted sessions, from no noise to the most: {'; '.join(told)}."


def _panel(page: Drawing, left: float, measure: str, rows: Sequence[dict[str, Any]]) -> None:
    """One measure of all ways, from 0 to 1, by noise."""
    noises = sorted({row["noise"] for row in rows})
    page.text(left, 24, MEASURES[measure], anchor="start", bold=True)
    for value in (0.0, 0.5, 1.0):
        y = TOP + HEIGHT * (1 - value)
        page.line([(left, y), (left + WIDTH, y)], "#e3e6ea", 1)
        page.text(left - 6, y + 4, f"{value:g}", size=11, anchor="end", color=MUTED)
    page.line([(left, TOP + HEIGHT), (left + WIDTH, TOP + HEIGHT)], LINE, 1)
    for noise in noises:
        page.text(left + WIDTH * noise / noises[-1], TOP + HEIGHT + 17, f"{noise:g}", size=11, color=MUTED)
    page.text(left + WIDTH / 2, TOP + HEIGHT + 36, "noise", size=12, color=MUTED)
    for way, (_, color) in WAYS.items():
        means = {row["noise"]: row[measure]["mean"] for row in rows if row["way"] == way}
        points = [(left + WIDTH * noise / noises[-1], TOP + HEIGHT * (1 - means[noise])) for noise in noises]
        page.line(points, color)
        for x, y in points:
            page.dot(x, y, 3, color)
