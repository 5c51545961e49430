"""docs/reproduce.md is what the manifest and the tables made here say."""

from __future__ import annotations

from pathlib import Path

from studies.reuserl.page import MADE, PAGE, page


def test_the_page_is_up_to_date(repository: Path) -> None:
    assert (repository / PAGE).read_text(encoding="utf-8") == page(repository), "python -m studies.reuserl"


def test_a_table_made_here_has_its_figures_in_the_layout_of_the_paper_and_its_record(
    repository: Path,
) -> None:
    made = sorted((repository / MADE).glob("*/*.md"))
    assert made
    for file in made:
        assert file.with_suffix(".json").is_file() and "paper: " in file.read_text(encoding="utf-8")
