"""``python -m docs.study``: update the record's figures in docs/study.md, its drawings and the README."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.made import made_anew
from docs.study.command import make_pages
from docs.study.figures import draw
from docs.study.page import parts
from docs.study.results import Results, read_results
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.store import FOLDER

PAGE = Path("docs/study.md")
README = Path("README.md")
FIGURES = Path("docs/figures")


def files(results: Results, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    known = parts(results)
    made = {
        page: made_anew((root / page).read_text(encoding="utf-8"), page, known, others)
        for page, others in {PAGE: (), README: ("language_model_in_short",)}.items()
    }
    return made | {FIGURES / f"study_{name}.svg": draw(results, name) for name in results.plan.questions}


def main() -> int:
    """The command; returns the exit code."""
    return make_pages(
        lambda: read_results(ROOT, ROOT / "params" / "study", ROOT / FOLDER), files, lambda found: found
    )


if __name__ == "__main__":
    sys.exit(main())
