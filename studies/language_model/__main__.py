"""``python -m studies.language_model``: update docs/language_model.md, its tables and its figure."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.made import made_anew
from skillpress.pipeline.settings import ROOT
from studies.language_model.curves import draw
from studies.language_model.page import parts
from studies.study.command import make_pages
from studies.study.results import Results, read_results

PLAN = Path("params/language_model")
RECORD = Path("studies/language_model")
PAGE = Path("docs/language_model.md")
TABLES = RECORD / "tables.md"
FIGURE = Path("docs/figures/language_model_curves.svg")


def files(results: Results, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    known = parts(results)
    made = {
        page: made_anew((root / page).read_text(encoding="utf-8"), page, known) for page in (PAGE, TABLES)
    }
    return made | {FIGURE: draw(results)}


def main() -> int:
    """The command; returns the exit code."""
    return make_pages(lambda: read_results(ROOT, ROOT / PLAN, ROOT / RECORD), files, lambda found: found)


if __name__ == "__main__":
    sys.exit(main())
