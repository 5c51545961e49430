"""``python -m studies.critical``: make docs/critical_experiment.md, its tables, drawings and the README."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.made import made_anew
from skillpress.pipeline.settings import ROOT
from studies.critical.deviation import deviation_figure
from studies.critical.figures import draw
from studies.critical.further import further_parts, read_further
from studies.critical.page import parts
from studies.critical.results import Critical, read_critical
from studies.study.command import make_pages

PAGE = Path("docs/critical_experiment.md")
TABLES = Path("studies/critical/tables.md")
README = Path("README.md")
FIGURES = Path("docs/figures")


def files(found: Critical, root: Path) -> dict[Path, str]:
    """Path within the repository to what it is to hold."""
    known = {**parts(found), **further_parts(read_further(root))}
    made = {
        page: made_anew((root / page).read_text(encoding="utf-8"), page, known)
        for page in (PAGE, TABLES, README)
    }
    made[FIGURES / "critical_deviation.svg"] = deviation_figure()
    return made | {FIGURES / f"{name}.svg": drawing for name, drawing in draw(found).items()}


def main() -> int:
    """The command; returns the exit code."""
    return make_pages(lambda: read_critical(ROOT), files, lambda found: found.results)


if __name__ == "__main__":
    sys.exit(main())
