"""Parquet files that say what they contain.

A table has its kind and a schema version in the file's metadata. A reader refuses a file of another kind, or
of a version with columns of another meaning, and its error says what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.storage import atomic_path

VERSIONS = {"rollouts": "6", "episodes": "6", "sequences": "4"}
"""Kind of table to its version; other kinds have ``SCHEMA_VERSION``.

Version 4 added names of states to rollouts, version 5 what each response was asked for, and version 6 the
skills and the answer of each step. Episodes are parts of an unfinished file of rollouts. Version 4 of
sequences has no labels of steps, since rollouts have the skills of each step.
"""
SCHEMA_VERSION = "3"
PRIVATE = frozenset({"rollouts", "episodes", "demonstrations", "conversations", "thoughts", "verdicts"})
"""Kinds of tables that repeat what environments, programs and models have written. They may contain keys or
passwords, so no other user can read them."""


def join_tables(path: str | Path, parts: Sequence[pl.LazyFrame], kind: str, row_group_size: int) -> None:
    """Write the rows of several tables one after the other, atomically and without holding them in memory."""
    with atomic_path(path, kind in PRIVATE) as temporary:
        pl.concat(parts).sink_parquet(temporary, metadata=_metadata(kind), row_group_size=row_group_size)


def write_table(path: str | Path, frame: pl.DataFrame, kind: str, row_group_size: int | None = None) -> None:
    """Write a table atomically, marked with its kind and the present version of its schema. Without
    ``row_group_size`` Polars chooses the rows per row group."""
    with atomic_path(path, kind in PRIVATE) as temporary:
        frame.write_parquet(temporary, metadata=_metadata(kind), row_group_size=row_group_size)


def _metadata(kind: str) -> dict[str, str]:
    return {"skillpress": f"{kind}/{_version(kind)}"}


def _version(kind: str) -> str:
    return VERSIONS.get(kind, SCHEMA_VERSION)


def scan_table(
    path: str | Path,
    kind: str,
    schema: Mapping[str, Any],
    older: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> pl.LazyFrame:
    """The rows that :func:`write_table` wrote, lazily.

    Args:
        older: earlier versions that can still be read, each with its own schema. Columns that it lacks are
            null, and columns that only it has are left out.

    Raises:
        StorageError: the file is missing, truncated, or has another schema.
    """
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "no such file"
        raise StorageError(f"{path}: {what}; run the stage that makes it, or name a file of {kind}")
    try:
        found = pl.read_parquet_metadata(path).get("skillpress")
        # Without glob: its special characters may be part of the file's name.
        lazy = pl.scan_parquet(path, glob=False)
        columns = lazy.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(
            f"{path}: not a readable Parquet file ({error}); name a file of {kind}, or make it again if an "
            "interrupted run left it incomplete"
        ) from error
    if wrong := _unlike(found, columns, kind):
        raise StorageError(f"{path}: {wrong}; name a file of {kind}")
    expected = {**older, _version(kind): schema}.get(str(found).partition("/")[2])
    if expected is None or dict(columns) != dict(expected):
        raise StorageError(
            f"{path}: schema is {found!r}, this version reads {kind}/{_version(kind)!r}; make it again "
            "with the command or stage that made it"
        )
    empty = {name: pl.lit(None, kept) for name, kept in schema.items() if name not in expected}
    return lazy.with_columns(**empty).select(list(schema)) if expected is not schema else lazy


def _unlike(found: str | None, columns: Iterable[str], kind: str) -> str | None:
    """Why a Parquet file with this mark is not a table of this kind; None if it is."""
    if found is None:
        names = ", ".join(list(columns)[:8]) or "none"
        return f"not a table of skillpress (its columns are {names})"
    other = found.partition("/")[0]
    return None if other == kind else f"holds {other}, and {kind} are wanted"
