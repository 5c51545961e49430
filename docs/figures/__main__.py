"""``python -m docs.figures``: draw all of them again."""

from __future__ import annotations

from pathlib import Path

from docs.figures import FIGURES

for name, draw in FIGURES.items():
    (Path(__file__).parent / f"{name}.svg").write_text(draw(), encoding="utf-8")
