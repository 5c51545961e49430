"""``python -m docs.critical``: update the record's figures in docs/critical_experiment.md, and drawings."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.critical.figures import draw
from docs.critical.page import parts
from docs.critical.results import Critical, read_critical
from docs.made import made_anew
from docs.study.command import make_pages
from skillpress.pipeline.settings import ROOT

PAGE = Path("docs/critical_experiment.md")
FIGURES = Path("docs/figures")


def files(found: Critical, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    made = {PAGE: made_anew((root / PAGE).read_text(encoding="utf-8"), PAGE, parts(found))}
    return made | {FIGURES / f"{name}.svg": drawing for name, drawing in draw(found).items()}


def main() -> int:
    """The command; returns the exit code."""
    return make_pages(lambda: read_critical(ROOT), files, lambda found: found.results)


if __name__ == "__main__":
    sys.exit(main())
