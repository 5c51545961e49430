"""A table of finished runs in the paper's layout, and a small JSON record of these runs."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.core.storage import write_json, write_text
from skillpress.evaluation.paper.layout import Line, PaperTable
from skillpress.evaluation.paper.manifest import ManifestError, number_of
from skillpress.evaluation.paper.text import csv_text, markdown
from skillpress.pipeline.finished.paper_tables import notes_on, tables_of
from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.papers.planned import Planned
from skillpress.pipeline.revision import revision


@dataclass(frozen=True)
class WrittenTable:
    """A table with the files that hold it."""

    name: str
    markdown: str
    file: Path


def write_tables(
    names: Sequence[str], runs: Sequence[FinishedRun], planned: Planned, out: Path
) -> list[WrittenTable]:
    """Check the runs against the manifest, and write these tables from them.

    Raises:
        RunsError: a run is none of the manifest's, or the runs do not fit in one table.
        ManifestError: none of the runs has a row of a table.
    """
    methods = [planned.check(run) for run in runs]
    found, notes = {table.number: table for table in tables_of(runs)}, notes_on(runs)
    written = []
    for name in names:
        table = found.get(number_of(name))
        if table is None:
            raise ManifestError(f"{name}: no run of these plays a benchmark that it has rows of")
        place = out / planned.scale / name.lower().replace(" ", "_")
        text = markdown([table], notes)
        write_text(place.with_suffix(".md"), text)
        write_text(place.with_suffix(".csv"), csv_text([table], runs[0].checkpoint.rule))
        write_json(place.with_suffix(".json"), record(name, table, runs, methods, planned))
        written.append(WrittenTable(name, text, place.with_suffix(".md")))
    return written


def record(
    name: str, table: PaperTable, runs: Sequence[FinishedRun], methods: Sequence[str], planned: Planned
) -> dict[str, Any]:
    """A record of the runs behind a table, with its figures and the paper's."""
    made = [
        {
            "benchmark": run.environment,
            "method": method,
            "seed": run.seed,
            "training_step": run.checkpoint.step,
            "overlays": [*planned.common(run.environment), planned.manifest.methods[method].overlay],
            "set": planned.assignments(run.environment),
        }
        for run, method in zip(runs, methods, strict=True)
    ]
    return {
        "table": name,
        "scale": planned.scale,
        "code": revision(),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "runs": made,
        "lines": [_line(line) for line in table.lines],
    }


def _line(line: Line) -> dict[str, Any]:
    cells = {
        method: {key: value for key, value in vars(cell).items() if value not in ("", None)}
        for method, cell in line.cells.items()
        if cell.text or cell.paper
    }
    return {"environment": line.environment, "heading": line.heading, "row": line.key, "cells": cells}
