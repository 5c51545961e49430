"""The paper's tables, as a section of the report or as a separate page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from skillpress.evaluation.paper.layout import PaperTable
from skillpress.evaluation.paper.text import NOT_RUN, grid
from skillpress.reports.report.theme import both

TEMPLATES = Environment(
    loader=PackageLoader("skillpress.reports.report", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""Every template of the report."""
TEMPLATES.filters["both"] = both


def paper_section(tables: Sequence[PaperTable], notes: Sequence[str]) -> dict[str, Any]:
    """The variables of the section's template."""
    return {
        "paper_tables": [(table.title, grid(table)) for table in tables],
        "paper_notes": notes,
        "not_run": NOT_RUN,
    }


def render_paper_page(tables: Sequence[PaperTable], notes: Sequence[str]) -> str:
    """The page, as the text of an HTML file that loads nothing."""
    return TEMPLATES.get_template("paper.html.j2").render(paper_section(tables, notes))
