"""Files of skill sequences: one row per trajectory, with its skills in order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import polars as pl

from skillpress.core.storage import make_folder
from skillpress.core.tables import join_tables, scan_table, write_table
from skillpress.core.trajectory import SkillSequence

SEQUENCE_ROW_GROUP, SEQUENCES_HELD = 122_880, 8192
"""Rows in a row group of a file of skill sequences, and sequences that its writer holds in memory."""

SEQUENCE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "rollout_index": pl.Int32,
    "won": pl.Boolean,
    "skills": pl.List(pl.String),
}
"""One row per trajectory. Rollouts have the skills of each step."""
OLDER = {"3": {**SEQUENCE_SCHEMA, "labels": pl.List(pl.String)}}
"""Earlier versions that can still be read, and their columns."""


def write_sequences(path: str | Path, sequences: Iterable[SkillSequence]) -> None:
    """Write skill sequences atomically; few are in memory at a time."""
    path, waiting = Path(path), iter(sequences)
    make_folder(path.parent)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
        parts = [Path(scratch) / "0"]
        write_table(parts[0], pl.DataFrame(schema=SEQUENCE_SCHEMA), "sequences")
        while some := list(islice(waiting, SEQUENCES_HELD)):
            rows = [(s.task_id, s.rollout_index, s.won, s.skills) for s in some]
            parts.append(Path(scratch) / str(len(parts)))
            write_table(parts[-1], pl.DataFrame(rows, schema=SEQUENCE_SCHEMA, orient="row"), "sequences")
        join_tables(path, [scan_sequences(part) for part in parts], "sequences", SEQUENCE_ROW_GROUP)


def scan_sequences(path: str | Path) -> pl.LazyFrame:
    """Skill sequences, lazily: rows with ``SEQUENCE_SCHEMA``.

    Raises:
        StorageError: the file is missing, truncated, or has another schema.
    """
    return scan_table(path, "sequences", SEQUENCE_SCHEMA, OLDER)
