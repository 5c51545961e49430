"""Files of tasks: one row per task."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Task

TASK_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "environment": pl.String,
    "split": pl.String,
    "stratum": pl.String,
    "seed": pl.Int64,
    "spec": pl.String,
}
"""One row per task; ``spec`` is the environment's own description as JSON."""


def write_tasks(path: str | Path, tasks: Iterable[Task]) -> None:
    """Write a task set atomically."""
    rows = [
        (t.task_id, t.environment, t.split, t.stratum, t.seed, json.dumps(t.spec, sort_keys=True))
        for t in tasks
    ]
    write_table(path, pl.DataFrame(rows, schema=TASK_SCHEMA, orient="row"), "tasks")


def read_tasks(path: str | Path) -> list[Task]:
    """Read a task set.

    Raises:
        StorageError: the file is missing, truncated, or has another schema.
    """
    frame = scan_table(path, "tasks", TASK_SCHEMA).collect()
    rows = frame.iter_rows(named=True)
    return [Task(**{**row, "spec": json.loads(row["spec"])}) for row in rows]
