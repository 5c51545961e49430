"""The paper's tables on a page: every cell shows its figure, its interval, its episodes and the paper's."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import pytest

from skillpress.evaluation.paper.layout import METHODS
from skillpress.reports.report.page import render_report
from skillpress.reports.report.paper_page import render_paper_page


class Cells(HTMLParser):
    """The text of every table cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "td":
            self._inside = True
            self.cells.append("")

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "td"

    def handle_data(self, data):
        if self._inside:
            self.cells[-1] += f"{data.strip()} "


def expected(tables) -> Counter[str]:
    """The words of every cell, in any order of the cells."""
    texts: Counter[str] = Counter()
    for table in tables:
        for line in table.lines:
            for cell in line.cells.values():
                basis = f"{cell.interval} n = {cell.episodes:,}" if cell.text else ""
                paper = f"paper: {cell.printed}" if cell.paper else ""
                texts[" ".join(f"{cell.text or '–'} {basis} {paper}".split())] += 1
    return texts


@pytest.mark.parametrize("whole", [True, False])
def test_every_cell_stands_on_the_page_with_its_interval_its_episodes_and_the_papers_figure(
    experiment, whole
):
    tables = experiment.paper_tables
    page = render_report(experiment) if whole else render_paper_page(tables, ["Checkpoint: last."])
    assert "<li>Checkpoint: last.</li>" in page
    section = page[page.index('<section id="paper">') : page.index("</section>", page.index('id="paper"'))]
    assert Counter(" ".join(cell.split()) for cell in Cells(section).cells) == expected(tables)


def test_every_method_is_named_on_every_table(experiment):
    page = render_paper_page(experiment.paper_tables, [])
    for name in METHODS.values():
        assert page.count(f">{name}</th>") == len(experiment.paper_tables)


def test_notes_are_text(experiment):
    assert "&lt;b&gt;" in render_paper_page(experiment.paper_tables, ["<b>"])
