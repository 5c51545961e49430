"""Files of rollouts: one row per step of a trajectory.

One table of columns defines how a file stores a trajectory: schema, writer and reader come from it. The
columns include everything that an algorithm compares.
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
"""Rows of a rollout file that its writer holds in memory, and that a reader may skip as one group."""


@dataclass(frozen=True)
class Column:
    """One column of a rollout file."""

    type: pl.DataType | type[pl.DataType]
    write: Callable[[Any], Any] = lambda value: value
    """Converts the record's field to the value that Polars stores."""
    read: Callable[[Any], Any] | None = lambda value: value
    """Converts it back; None for a column that can be computed from the others."""


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
"""The fields of a :class:`Trajectory`; each of its rows repeats them."""

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
        lambda parts: [{"name": part.name, "value": part.value, "credit": part.credit} for part in parts],
        lambda rows: tuple(RewardPart(**row) for row in rows),
    ),
    "reward": Column(pl.Float64, read=None),
    "weight_spans": Column(
        pl.List(pl.Struct({"version": pl.Int32, "start": pl.Int32, "end": pl.Int32})),
        lambda spans: [{"version": span.version, "start": span.start, "end": span.end} for span in spans],
        lambda rows: tuple(WeightSpan(**row) for row in rows),
    ),
    "state_key": Column(pl.String),
    "kind": Column(pl.String),
    "skills": Column(pl.List(pl.String), read=lambda skills: None if skills is None else tuple(skills)),
    "answer": Column(pl.String),
}
"""The fields of a :class:`Step` that files keep."""

TRAINING_COLUMNS = ("prompt_ids", "response_ids", "logprobs", "reward_parts", "weight_spans")
"""Columns that only training reads; they are most of a file."""

ROLLOUT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **{name: column.type for name, column in TRAJECTORY_COLUMNS.items()},
    "step": pl.Int32,
    **{name: column.type for name, column in STEP_COLUMNS.items()},
}
"""One row per step, in the order of acting; ``step`` counts from 0 within the trajectory. A summary's row has
the number of the step that follows it and no ``action``."""

_IN_6 = ("skills", "answer")
LACKING = {"3": ("state_key", "kind", *_IN_6), "4": ("kind", *_IN_6), "5": _IN_6}
OLDER = {
    version: {name: ROLLOUT_SCHEMA[name] for name in ROLLOUT_SCHEMA if name not in lacking}
    for version, lacking in LACKING.items()
}
"""Earlier versions that can still be read, and their columns."""

NOTHING_ASKED = "nothing_asked"
"""``invalid`` of a program's step without a request."""
TAKEN = pl.col("action").is_not_null()
"""Whether a row is a step and not a summary."""

TRAJECTORY_KEY = ("task_id", "group_id", "rollout_index")
"""The columns that together identify a trajectory in a file."""


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
    """Write the rows of rollout files one after the other, atomically and without holding them in memory. The
    result has the same bytes as :func:`write_rollouts` of all their trajectories.

    Raises:
        StorageError: a part is missing, truncated, or has another schema.
    """
    join_tables(path, [scan_table(part, "rollouts", ROLLOUT_SCHEMA) for part in parts], "rollouts", ROW_GROUP)


def scan_rollouts(path: str | Path) -> pl.LazyFrame:
    """The rows of a rollout file, lazily. Columns that an older version lacks are null (``OLDER``).

    Raises:
        StorageError: the file is missing, truncated, or has another schema.
    """
    return scan_table(path, "rollouts", ROLLOUT_SCHEMA, OLDER)


def read_rollouts(path: str | Path) -> list[Trajectory]:
    """All trajectories of a file, in the order in which they were written.

    Raises:
        StorageError: the file is missing, truncated, has another schema, or lacks steps of a trajectory.
    """
    return list(iterate_rollouts(path))


def iterate_rollouts(
    path: str | Path, keep: pl.Expr | None = None, tokens: bool = True
) -> Iterator[Trajectory]:
    """Whole trajectories in the order in which they were written; few are in memory at a time.

    Args:
        keep: which trajectories, as a condition on their rows; None keeps all of them.
        tokens: False leaves out the columns that only training reads (``TRAINING_COLUMNS``).

    Raises:
        StorageError: the file is missing, truncated, has another schema, or lacks steps of a trajectory.
    """
    columns = [name for name in ROLLOUT_SCHEMA if tokens or name not in TRAINING_COLUMNS]
    for rows in stretches(scan_rollouts(path), TRAJECTORY_KEY, keep, columns):
        yield from trajectories_of(rows, path)


def trajectories_of(rows: pl.DataFrame, path: str | Path) -> Iterator[Trajectory]:
    """The trajectories in rows of whole trajectories; fields whose columns are missing are empty.

    Raises:
        StorageError: the rows lack steps of a trajectory; the message names ``path``.
    """
    for _, steps in groupby(rows.iter_rows(named=True), itemgetter(*TRAJECTORY_KEY)):
        yield _trajectory(list(steps), path)


def stretches(
    rows: pl.LazyFrame,
    key: Sequence[str],
    keep: pl.Expr | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows of a file in order, about ``ROW_GROUP`` at a time; the others stay on disk.

    Successive rows with the same key stay together. There is at least one stretch; it is empty if there are
    no rows.

    Args:
        rows: a scanned file. A slice of filtered rows could only be found by reading all rows before it, so
            pass filters as ``keep``.
        keep: which of the rows; None keeps all of them.
        columns: which columns, including those of the key; None keeps all of them.
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
            waiting = waiting.slice(end)  # the rows of the last key may continue in the next slice
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
    """The step of a row; files of older versions do not distinguish reflections from summaries."""
    acted = row["action"] is not None
    kind = row.get("kind") or ("action" if acted else "summary")
    known = {"kind": kind, "action": row["action"] or "", "skills": row.get("skills")}
    return Step(**_fields(STEP_COLUMNS, {**row, **known}))


def _fields(columns: Mapping[str, Column], row: Mapping[str, Any]) -> dict[str, Any]:
    """The record's fields; fields whose columns were not read are empty."""
    return {
        name: column.read(row.get(name, ())) for name, column in columns.items() if column.read is not None
    }
