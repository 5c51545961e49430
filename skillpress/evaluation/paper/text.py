"""The paper's tables as Markdown, in the paper's layout, and as CSV, one line per cell."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from skillpress.evaluation.paper.layout import METHOD_ROWS, UNTRAINED, PaperCell, PaperTable
from skillpress.evaluation.paper.methods import label_of

NOT_RUN = "–"
"""The mark for a method without a run."""

CSV_HEADER = (
    "table", "environment", "figure", "method", "checkpoint",
    "text", "value", "low", "high", "unit", "episodes", "paper",
)  # fmt: skip


@dataclass(frozen=True)
class GridRow:
    """A line in the paper's layout."""

    label: str
    heading: str
    """The environment, if it is not a column's. A table names it once, above its first line."""
    cells: tuple[PaperCell, ...]


@dataclass(frozen=True)
class Grid:
    """A table in the paper's layout."""

    heads: tuple[str, ...]
    rows: tuple[GridRow, ...]


def grid(table: PaperTable) -> Grid:
    """Figures in rows and methods in columns, or transposed if the paper's table is."""
    methods = {method: label_of(method) for line in table.lines for method in line.cells}
    if table.number in METHOD_ROWS:
        heads = tuple(f"{line.heading}: {line.label}" for line in table.lines)
        rows = tuple(
            GridRow(name, "", tuple(line.cells.get(method, PaperCell()) for line in table.lines))
            for method, name in methods.items()
        )
        return Grid(heads, rows)
    lines = tuple(
        GridRow(line.label, line.heading, tuple(line.cells.get(method, PaperCell()) for method in methods))
        for line in table.lines
    )
    return Grid(tuple(methods.values()), lines)


def markdown(tables: Sequence[PaperTable], notes: Sequence[str]) -> str:
    """The tables one after the other; ``notes`` say how the figures were computed."""
    parts = ["# The paper's tables, computed from these runs\n", *(f"- {note}" for note in notes), ""]
    for table in tables:
        parts += [f"## {table.title}\n", *_markdown_rows(grid(table)), ""]
    return "\n".join(parts)


def csv_text(tables: Sequence[PaperTable], checkpoint: str) -> str:
    """Every cell with content. Numbers are unrounded, shares are in [0, 1].

    Args:
        checkpoint: the rule that chose the trained policies; the CSV repeats it with each of their figures.
    """
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    writer.writerows(_csv_rows(tables, checkpoint))
    return buffer.getvalue()


def _markdown_rows(content: Grid) -> Iterator[str]:
    yield "| | " + " | ".join(content.heads) + " |"
    yield "|---" * (len(content.heads) + 1) + "|"
    heading = ""
    for row in content.rows:
        if row.heading != heading:
            heading = row.heading
            yield f"| *{heading}* |" + " |" * len(content.heads)
        yield f"| {row.label} | " + " | ".join(map(_markdown_cell, row.cells)) + " |"


def _markdown_cell(cell: PaperCell) -> str:
    parts = [f"**{cell.text}**" if cell.text else NOT_RUN]
    if cell.interval:
        parts.append(cell.interval)
    if cell.text and cell.episodes is not None:
        parts.append(f"n = {cell.episodes:,}")
    if cell.paper:
        parts.append(f"paper: {cell.printed}")
    return "<br>".join(parts)


def _csv_rows(tables: Sequence[PaperTable], checkpoint: str) -> Iterator[tuple[str, ...]]:
    for table in tables:
        for line in table.lines:
            for method, cell in line.cells.items():
                if cell.text or cell.paper:
                    numbers = ("" if x is None else repr(x) for x in (cell.value, cell.low, cell.high))
                    rule = checkpoint if cell.text and method not in UNTRAINED else ""
                    place = (str(table.number), line.environment, line.key, method, rule)
                    episodes = "" if cell.episodes is None else str(cell.episodes)
                    yield (*place, cell.text, *numbers, cell.unit, episodes, cell.paper)
