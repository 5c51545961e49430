"""``python -m docs.study``: update the record's figures in docs/study.md, its drawings and the README."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from docs.made import made_anew
from docs.study.figures import draw
from docs.study.page import parts
from docs.study.results import Results, read_results
from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.pipeline import exit_codes
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


def main(arguments: Sequence[str] = ()) -> int:
    """The command; returns the exit code."""
    try:
        results = read_results(ROOT, ROOT / "params" / "study", ROOT / FOLDER)
        for path, text in files(results, ROOT).items():
            write_text(ROOT / path, text)
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.USER_ERROR
    recorded, planned = sum(results.recorded.values()), sum(results.planned.values())
    print(f"{recorded} of {planned} runs; the pages are made anew")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
