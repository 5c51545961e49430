"""``python -m docs.language_model``: update the record's figures in docs/language_model.md and the README."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.language_model.curves import draw
from docs.language_model.page import parts
from docs.made import made_anew
from docs.study.results import Results, read_results
from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.pipeline import exit_codes
from skillpress.pipeline.settings import ROOT

PLAN = Path("params/language_model")
RECORD = Path("docs/language_model")
PAGE = Path("docs/language_model.md")
README = Path("README.md")
FIGURE = Path("docs/figures/language_model_curves.svg")


def files(results: Results, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    known = parts(results)
    made = {
        page: made_anew((root / page).read_text(encoding="utf-8"), page, known, others=others)
        for page, others in {PAGE: (), README: ("methods_in_short",)}.items()
    }
    return made | {FIGURE: draw(results)}


def main() -> int:
    """The command; returns the exit code."""
    try:
        results = read_results(ROOT, ROOT / PLAN, ROOT / RECORD)
        for path, text in files(results, ROOT).items():
            write_text(ROOT / path, text)
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.USER_ERROR
    recorded, planned = sum(results.recorded.values()), sum(results.planned.values())
    print(f"{recorded} of {planned} runs; the pages are made anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
