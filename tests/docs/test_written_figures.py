"""Figures with an interval in the written text of pages that are made from a record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.made import MADE

DIFFERENCE = re.compile(r"[+-]\d+\.\d \([+-]\d+\.\d to [+-]\d+\.\d\)")
LEVEL = re.compile(r"(?<![\d+-])\d+\.\d \(\d+\.\d to \d+\.\d\)")
PAGES = {
    "README.md": (),
    "docs/study.md": ("studies/study/tables.md",),
    "studies/study/plan.md": ("studies/study/tables.md", "docs/study.md"),
    "docs/critical_experiment.md": ("studies/critical/tables.md",),
    "docs/language_model.md": ("studies/language_model/tables.md",),
}
"""Page to the files beside records whose made parts it may quote."""


def figures_of(text: str) -> set[str]:
    line = " ".join(text.split())
    return {*DIFFERENCE.findall(line), *LEVEL.findall(line)}


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_that_is_written_is_one_that_the_record_gives(page: str, repository: Path) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    quoted = [(repository / beside).read_text(encoding="utf-8") for beside in PAGES[page]]
    made = figures_of(" ".join(match[0] for source in (text, *quoted) for match in MADE.finditer(source)))
    assert figures_of(MADE.sub(" ", text)) <= made


def test_a_figure_that_no_part_has_is_found() -> None:
    assert figures_of("gains +1.5 (+0.2\nto +2.8), from 82.5 (80.9 to 84.1)") == {
        "+1.5 (+0.2 to +2.8)",
        "82.5 (80.9 to 84.1)",
    }
