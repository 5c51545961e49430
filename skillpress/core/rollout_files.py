"""Files of rollouts: one row per step of a trajectory.

What a trajectory is on disk stands in one table of columns, which gives the schema, the writer and the
reader. Whatever an algorithm compares is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.logprobs import as_logprobs
from skillpress.core.tables import join_tables, scan_table, write_table
from skillpress.core.trajectory import RewardPart, Step, Summary, Trajectory, WeightSpan

ROW_GROUP = 32_768
"""Rows of a rollout file that its writer holds, and that a reader may skip together."""


@dataclass(frozen=True)
class Column:
    """One column of a rollout file."""

    type: pl.DataType | type[pl.DataType]
    write: Callable[[Any], Any] = lambda value: value
    """From the record's field to what Polars stores."""
    read: Callable[[Any], Any] | None = lambda value: value
    """Back again; None for a column that can be worked out from the others."""


def _write_parts(parts: tuple[RewardPart, ...]) -> list[dict[str, Any]]:
    return [{"name": part.name, "value": part.value, "credit": part.credit} for part in parts]


def _read_parts(rows: list[dict[str, Any]]) -> tuple[RewardPart, ...]:
    return tuple(RewardPart(**row) for row in rows)


def _write_spans(spans: tuple[WeightSpan, ...]) -> list[dict[str, int]]:
    return [{"version": span.version, "start": span.start, "end": span.end} for span in spans]


def _read_spans(rows: list[dict[str, int]]) -> tuple[WeightSpan, ...]:
    return tuple(WeightSpan(**row) for row in rows)


TRAJECTORY_COLUMNS: dict[str, Column] = {
    "task_id": Column(pl.String),
    "group_id": Column(pl.String),
    "policy": Column(pl.String),
    "run": Column(pl.Int32),
    "rollout_index": Column(pl.Int32),
    "first_observation": Column(pl.String),
    "won": Column(pl.Boolean),
    "terminated": Column(pl.Boolean),
    "truncated": Column(pl.Boolean),
    "outcome": Column(pl.String),
    "policy_version": Column(pl.Int32),
    "seed": Column(pl.Int64),
}
"""The fields of a :class:`Trajectory`; every row of it repeats them."""

STEP_COLUMNS: dict[str, Column] = {
    "prompt_ids": Column(pl.List(pl.Int32), read=tuple),
    "response_ids": Column(pl.List(pl.Int32), read=tuple),
    "logprobs": Column(pl.List(pl.Float32), read=as_logprobs),
    "thought": Column(pl.String),
    "action": Column(pl.String),
    "observation": Column(pl.String),
    "invalid": Column(pl.String),
    "reward_parts": Column(
        pl.List(pl.Struct({"name": pl.String, "value": pl.Float64, "credit": pl.String})),
        _write_parts,
        _read_parts,
    ),
    "reward": Column(pl.Float64, read=None),
    "weight_spans": Column(
        pl.List(pl.Struct({"version": pl.Int32, "start": pl.Int32, "end": pl.Int32})),
        _write_spans,
        _read_spans,
    ),
    "state_key": Column(pl.String),
    "kind": Column(pl.String),
}
"""The fields of a :class:`Step` that files keep."""

OLDER = {"3": ("state_key", "kind"), "4": ("kind",)}
"""Earlier versions that are read too, with the columns that they lack."""
TRAINING_COLUMNS = ("prompt_ids", "response_ids", "logprobs", "reward_parts", "weight_spans")
"""Those that training alone reads, which are most of a file."""

ROLLOUT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **{name: column.type for name, column in TRAJECTORY_COLUMNS.items()},
    "step": pl.Int32,
    **{name: column.type for name, column in STEP_COLUMNS.items()},
}
"""One row per step, in the order acted; ``step`` counts from 0 within the trajectory. A summary's row has the
number of the step that it stands before and no ``action``."""

TAKEN = pl.col("action").is_not_null()
"""Whether a row is a step, and no summary."""

TRAJECTORY_KEY = ("task_id", "group_id", "rollout_index")
"""What tells the trajectories of a file apart."""


def rollout_frame(trajectories: Iterable[Trajectory]) -> pl.DataFrame:
    """The steps of trajectories as rows of :data:`ROLLOUT_SCHEMA`."""
    rows = [(trajectory, *decision) for trajectory in trajectories for decision in trajectory.in_order()]
    values: dict[str, list[Any]] = {
        name: [column.write(getattr(trajectory, name)) for trajectory, *_ in rows]
        for name, column in TRAJECTORY_COLUMNS.items()
    }
    values["step"] = [index for _, index, *_ in rows]
    for name, column in STEP_COLUMNS.items():
        values[name] = [column.write(getattr(step, name)) for _, _, step, _ in rows]
    values["action"] = [None if summary else step.action for _, _, step, summary in rows]
    return pl.DataFrame(values, schema=ROLLOUT_SCHEMA)


def write_rollouts(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write trajectories atomically, one row per step or summary."""
    write_table(path, rollout_frame(trajectories), "rollouts", ROW_GROUP)


def join_rollouts(path: str | Path, parts: Sequence[Path]) -> None:
    """Write the rows of rollout files one after the other, atomically and without holding them: the bytes
    that :func:`write_rollouts` gives for all of their trajectories.

    Raises:
        StorageError: a part is missing, truncated, or of another schema.
    """
    join_tables(path, [scan_table(part, "rollouts", ROLLOUT_SCHEMA) for part in parts], "rollouts", ROW_GROUP)


def scan_rollouts(path: str | Path) -> pl.LazyFrame:
    """The rows of a rollout file, lazily. Columns that an older version lacks are null (``OLDER``).

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    return scan_table(path, "rollouts", ROLLOUT_SCHEMA, OLDER)


def read_rollouts(path: str | Path) -> list[Trajectory]:
    """Read whole trajectories back, in the order they were written.

    Raises:
        StorageError: missing, truncated, of another schema, or a trajectory's steps are not all there.
    """
    return list(iterate_rollouts(path))


def iterate_rollouts(
    path: str | Path, keep: pl.Expr | None = None, tokens: bool = True
) -> Iterator[Trajectory]:
    """Whole trajectories in the order they were written, of which few are in memory at a time.

    Args:
        keep: which of them, by their rows; None is all of them.
        tokens: False leaves out what training alone reads of a step (``TRAINING_COLUMNS``).

    Raises:
        StorageError: missing, truncated, of another schema, or a trajectory's steps are not all there.
    """
    columns = [name for name in ROLLOUT_SCHEMA if tokens or name not in TRAINING_COLUMNS]
    for rows in stretches(scan_rollouts(path), TRAJECTORY_KEY, keep, columns):
        yield from trajectories_of(rows, path)


def trajectories_of(rows: pl.DataFrame, path: str | Path) -> Iterator[Trajectory]:
    """The trajectories of whole trajectories' rows; the fields of columns that are not there are empty.

    Raises:
        StorageError: a trajectory's steps are not all there; the message names ``path``.
    """
    for _, steps in groupby(rows.iter_rows(named=True), itemgetter(*TRAJECTORY_KEY)):
        yield _trajectory(list(steps), path)


def stretches(
    rows: pl.LazyFrame,
    key: Sequence[str],
    keep: pl.Expr | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows of a file in their order, about ``ROW_GROUP`` at a time, while the others stay on disk.

    Rows that follow each other with the same key stay together. There is at least one stretch; where there
    is no row it is empty.

    Args:
        rows: a file as it is scanned. A slice of filtered rows can only be found by reading all before it,
            so what filters goes into ``keep``.
        keep: which of the rows; None is all of them.
        columns: which columns, those of the key among them; None is all of them.
    """
    wanted = pl.all() if columns is None else pl.col(columns)
    condition = pl.lit(True) if keep is None else keep
    waiting = rows.head(0).select(wanted).collect()
    for first in range(0, rows.select(pl.len()).collect().item(), ROW_GROUP):
        found = rows.slice(first, ROW_GROUP).filter(condition).select(wanted).collect()
        waiting = pl.concat([waiting, found])
        numbers = waiting.select(pl.struct(*key).rle_id()).to_series()
        end = numbers.search_sorted(numbers[-1]) if waiting.height else 0
        if end:
            yield waiting.head(end)
            waiting = waiting.slice(end)  # the last key's rows may go on behind the slice
    yield waiting


def _trajectory(rows: Sequence[Mapping[str, Any]], path: str | Path) -> Trajectory:
    taken = [row for row in rows if row["action"] is not None]
    if [row["step"] for row in taken] != list(range(len(taken))):
        place = ", ".join(f"{name} {rows[0][name]}" for name in TRAJECTORY_KEY)
        raise StorageError(
            f"{path}: the {len(taken)} rows of {place} are not its steps from 0 on in their order; make it "
            "again with the command or stage that made it"
        )
    return Trajectory(
        steps=tuple(_step(row) for row in taken),
        summaries=tuple(Summary(row["step"], _step(row)) for row in rows if row["action"] is None),
        **_fields(TRAJECTORY_COLUMNS, rows[0]),
    )


def _step(row: Mapping[str, Any]) -> Step:
    """The step of a row; files of older versions do not tell reflections from summaries."""
    acted = row["action"] is not None
    known = {"kind": row.get("kind") or ("action" if acted else "summary"), "action": row["action"] or ""}
    return Step(**_fields(STEP_COLUMNS, {**row, **known}))


def _fields(columns: Mapping[str, Column], row: Mapping[str, Any]) -> dict[str, Any]:
    """The record's fields; those of columns that were not read are empty."""
    return {
        name: column.read(row.get(name, ())) for name, column in columns.items() if column.read is not None
    }
