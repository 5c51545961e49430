"""``python -m studies.study``: update docs/study.md, its tables and its drawings."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.made import made_anew
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.store import FOLDER
from studies.study.again import read_again
from studies.study.command import make_pages
from studies.study.figures import draw
from studies.study.page import parts
from studies.study.results import Results, read_results

PAGE = Path("docs/study.md")
TABLES = FOLDER / "tables.md"
DECLARED = FOLDER / "plan.md"
FIGURES = Path("docs/figures")


Study = tuple[Results, Results]
"""The study, and what of it was run again."""


def read_study(root: Path) -> Study:
    """Both plans and records; ``UserError`` for a wrong plan or a damaged record."""
    return read_results(root, root / "params" / "study", root / FOLDER), read_again(root)


def files(found: Study, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    results, again = found
    known = parts(results, again)
    made = {
        page: made_anew((root / page).read_text(encoding="utf-8"), page, known)
        for page in (PAGE, TABLES, DECLARED)
    }
    return made | {FIGURES / f"study_{name}.svg": draw(results, name) for name in results.plan.questions}


def main() -> int:
    """The command; returns the exit code."""
    return make_pages(lambda: read_study(ROOT), files, lambda found: found[0])


if __name__ == "__main__":
    sys.exit(main())
