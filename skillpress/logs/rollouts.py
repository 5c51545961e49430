"""Our own rollout files: every step's action and whether it was refused; success is ``won``.

Rows are read in chunks, without the columns that only training needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.rollout_files import TRAJECTORY_KEY, scan_rollouts, stretches
from skillpress.environments.calls.steps import TraceStep, acted
from skillpress.logs.fields import seconds
from skillpress.logs.trace import Trace

_COLUMNS = (*TRAJECTORY_KEY, "policy", "policy_version", "won", "action", "invalid")


def is_rollouts(path: Path) -> bool:
    """Whether a file is a Parquet file that skillpress wrote, of any kind and version."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return False
        return "skillpress" in pl.read_parquet_metadata(path)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False


def read_rollouts(path: Path, only: frozenset[int] | None = None) -> Iterator[tuple[int, Trace]]:
    """(number of the episode in its file, trace), in the file's order.

    Args:
        only: the wanted episodes, read with their observations; None reads all of them, without observations.

    Raises:
        StorageError: the file is not a rollout file of this version.
    """
    columns = _COLUMNS if only is None else (*_COLUMNS, "observation")
    number = 0
    for rows in stretches(scan_rollouts(path), TRAJECTORY_KEY, columns=columns):
        for _, steps in groupby(rows.iter_rows(named=True), itemgetter(*TRAJECTORY_KEY)):
            if only is None or number in only:
                yield number, _trace(list(steps))
            number += 1


def _trace(rows: list[Mapping[str, Any]]) -> Trace:
    steps = (
        step
        for row in rows
        if row["action"] is not None  # a summary has none
        for step in acted(row["action"], row.get("observation", ""), row["invalid"] is not None)
    )
    return replace(own_trace(rows[0], steps), outcome="won")


def own_trace(fields: Mapping[str, Any], steps: Iterable[TraceStep]) -> Trace:
    """The trace of a skillpress episode, in whatever format it was exported."""
    return Trace(
        f"{fields['group_id']}/{fields['rollout_index']}",
        tuple(steps),
        success=fields["won"],
        task=str(fields["task_id"]),
        version=str(fields["policy"]),
        time=seconds(fields["policy_version"]),
    )
