"""Which training tasks are trained on: ``tasks.keep``, by how often the start policy wins each.

A task whose rollouts are all won or all lost teaches a method nothing that compares the rollouts of a task.
Pass rates are those of the stage ``collect_rollouts``. A task that it has not played has none and is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from skillpress.core.errors import TaskError
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Task
from skillpress.environments.task_parameters import KeepParameters

KIND = "pass_rates"
PASS_RATE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "task_id": pl.String,
    "wins": pl.UInt32,
    "rollouts": pl.UInt32,
}
"""One row per task that was played."""


@dataclass(frozen=True)
class KeptTasks:
    """How many training tasks are kept, and how many are dropped for which reason."""

    tasks: int
    kept: int
    below: int
    """Number of tasks won less often than ``at_least``."""
    above: int
    """Number of tasks won more often than ``at_most``."""
    not_played: int

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def write_pass_rates(path: Path, steps: pl.LazyFrame) -> None:
    """Write for each task, by its id, ``wins`` and ``rollouts``, from the steps of all rollouts."""
    first = steps.filter(pl.col("step") == 0)
    counted = first.group_by("task_id").agg(wins=pl.col("won").sum(), rollouts=pl.len())
    write_table(path, counted.sort("task_id").collect(), KIND)


def read_pass_rates(path: Path) -> dict[str, tuple[int, int]]:
    """Task id to wins and rollouts.

    Raises:
        StorageError: the file is missing or damaged.
    """
    rows = scan_table(path, KIND, PASS_RATE_SCHEMA).collect().iter_rows()
    return {task: (wins, rollouts) for task, wins, rollouts in rows}


def kept_tasks(
    tasks: Sequence[Task], rates: dict[str, tuple[int, int]], keep: KeepParameters | None
) -> tuple[list[Task], KeptTasks]:
    """The tasks that are kept, in their order, and the counts; without ``keep`` all of them.

    Raises:
        TaskError: no task is left.
    """
    if keep is None:
        return list(tasks), KeptTasks(tasks=len(tasks), kept=len(tasks), below=0, above=0, not_played=0)
    played = [task for task in tasks if task.task_id in rates]
    kept = [task for task in played if keep.keeps(*rates[task.task_id])]
    below = sum(
        wins / rollouts < keep.at_least for wins, rollouts in (rates[task.task_id] for task in played)
    )
    counts = KeptTasks(
        tasks=len(tasks),
        kept=len(kept),
        below=below,
        above=len(played) - len(kept) - below,
        not_played=len(tasks) - len(played),
    )
    if not kept:
        raise TaskError(
            f"tasks.keep: is {keep.at_least} to {keep.at_most}, and no training task has such a pass rate: "
            f"of {counts.tasks}, {counts.below} are below, {counts.above} above, and {counts.not_played} "
            "were not played; widen tasks.keep, raise rollouts.per_task, or play more (rollouts.tasks: all)"
        )
    return kept, counts
