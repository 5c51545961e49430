"""``python -m docs.families_table``: make the table of docs/families.md from tiny models of all families."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docs.made import made_anew
from docs.words import table
from skillpress.core.storage import write_text
from skillpress.pipeline.settings import ROOT
from tests.support.models.family_folders import FAMILIES
from tests.support.models.family_rows import CELLS, row

PAGE = Path("docs/families.md")


def families() -> Iterator[str]:
    """A row per family."""
    rows = []
    for name, family in FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            rows.append((name, *row(family.policy(Path(folder) / "model"), Path(folder))))
    yield from table(("", *CELLS), rows)


def page(root: Path) -> str:
    """The page as the table makes it."""
    return made_anew((root / PAGE).read_text(encoding="utf-8"), PAGE, {"families": families})


if __name__ == "__main__":
    write_text(ROOT / PAGE, page(ROOT))
    sys.exit(0)
