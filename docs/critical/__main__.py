"""``python -m docs.critical``: update the record's figures in docs/critical_experiment.md, and drawings."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.critical.figures import draw
from docs.critical.page import parts
from docs.critical.results import Critical, read_critical
from docs.made import made_anew
from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.pipeline import exit_codes
from skillpress.pipeline.settings import ROOT

PAGE = Path("docs/critical_experiment.md")
FIGURES = Path("docs/figures")


def files(found: Critical, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    made = {PAGE: made_anew((root / PAGE).read_text(encoding="utf-8"), PAGE, parts(found))}
    return made | {FIGURES / f"{name}.svg": drawing for name, drawing in draw(found).items()}


def main() -> int:
    """The command; returns the exit code."""
    try:
        found = read_critical(ROOT)
        for path, text in files(found, ROOT).items():
            write_text(ROOT / path, text)
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.USER_ERROR
    recorded, planned = sum(found.results.recorded.values()), sum(found.results.planned.values())
    print(f"{recorded} of {planned} runs; the page is made anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
