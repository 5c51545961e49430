"""``python -m docs.study``: make the tables and figures of docs/study.md anew from the committed record."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from docs.made import made_anew
from docs.study.figures import draw
from docs.study.page import parts
from docs.study.results import Results, read_results
from skillpress.errors import UserError
from skillpress.storage import write_text
from tasks import exit_codes
from tasks.settings import ROOT
from tasks.study.store import FOLDER

PAGE = Path("docs/study.md")
FIGURES = Path("docs/figures")


def files(results: Results, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    made = {PAGE: made_anew((root / PAGE).read_text(encoding="utf-8"), PAGE, parts(results))}
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
    print(f"{sum(results.recorded.values())} of {sum(results.planned.values())} runs; {PAGE} is made anew")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
