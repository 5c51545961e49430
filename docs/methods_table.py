"""``python -m docs.methods_table``: make the table of docs/methods.md that compares algorithms.

The figures are those of ``benchmarks/methods.py``, in ``benchmarks/results/methods.json``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.made import Parts, made_anew
from docs.words import NONE, p_value, percent, points, table
from skillpress.core.storage import read_json, write_text
from skillpress.evaluation.study.holm import holm
from skillpress.pipeline.settings import ROOT

PAGE = Path("docs/methods.md")
FIGURES = Path("benchmarks/results/methods.json")
BASELINE = "grpo"


def parts(found: Mapping[str, Any]) -> Parts:
    """What of the page is made from what ``benchmarks.methods`` printed."""
    return {"comparison": lambda: comparison(found)}


def comparison(found: Mapping[str, Any]) -> Iterator[str]:
    """A row per algorithm, the best first, and the start's."""
    algorithms = found["algorithms"]
    others = [name for name in algorithms if name != BASELINE]
    corrected = dict(zip(others, holm([_less(algorithms[name])["p"] for name in others]), strict=True))
    heads = ("", "Pass@1, % (95%)", "less `grpo`, points (95%)", "p, corrected", "area, %", "less `grpo`")
    rows = []
    for name in sorted(algorithms, key=lambda name: -algorithms[name]["pass_at_1"]["mean"]):
        entry = algorithms[name]
        success, area = (_percent(entry[figure]) for figure in ("pass_at_1", "area"))
        more, sooner = (_points(entry, figure) for figure in ("pass_at_1", "area"))
        rows.append((f"`{name}`", success, more, p_value(corrected.get(name)), area, sooner))
    start = found["start"]
    rows.append(("imitation start", _percent(start["pass_at_1"]), NONE, NONE, _percent(start["area"]), NONE))
    yield from table(heads, rows)


def _less(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    less: Mapping[str, Any] = entry["less_grpo"]["pass_at_1"]
    return less


def _points(entry: Mapping[str, Any], figure: str) -> str:
    if entry["less_grpo"] is None:
        return NONE
    less = entry["less_grpo"][figure]
    return points(less["mean"], less["low"], less["high"])


def _percent(estimate: Mapping[str, Any]) -> str:
    return percent(estimate["mean"], estimate["low"], estimate["high"])


def page(root: Path) -> str:
    """The page as its figures make it."""
    return made_anew((root / PAGE).read_text(encoding="utf-8"), PAGE, parts(read_json(root / FIGURES)))


if __name__ == "__main__":
    write_text(ROOT / PAGE, page(ROOT))
    sys.exit(0)
