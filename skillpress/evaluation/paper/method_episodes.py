"""One method in one environment: the episodes behind a cell of a table.

The experiments of a method, one per training seed, are pooled. A task that several of them played is one task
in every interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.rollout_files import trajectories_of
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Task, Trajectory
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps, episode_table

GRADES: dict[str, type[pl.DataType]] = {
    "training_seed": pl.Int64,
    "run": pl.Int32,
    "task_id": pl.String,
    "rollout_index": pl.Int32,
    "answer": pl.String,
    "grade": pl.String,
}
"""An episode, the answer that was graded, and its grade; null if the judge's verdict could not be read."""
_FILE: dict[str, Any] = {"policy": pl.String, **{k: v for k, v in GRADES.items() if k != "training_seed"}}

TIMEOUT = "timeout"
"""The outcome of an episode that was neither won nor lost within its step budget."""


@dataclass(frozen=True)
class MethodEpisodes:
    """All evaluation episodes of one method in one environment."""

    steps: EvaluationSteps
    """The steps of all training seeds together."""
    tasks: Mapping[str, Task]
    """Tasks that were played, by id."""
    votes: int = 1
    """k: episodes per task and run."""
    max_steps: int = 0
    """T; 0 if it is not known."""
    model: str = ""
    """``policy.model``; empty if it is not known."""
    last_dictionaries: Sequence[Mapping[tuple[str, ...], int]] = ()
    """Per training seed, the learned phrases of the last training step's dictionary and their uses."""
    grades: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GRADES))
    """A judge's grades of answers; empty if none were graded."""

    @cached_property
    def episodes(self) -> pl.DataFrame:
        """Rows of ``episode_table``."""
        return episode_table(self.steps)

    def where(self, keep: Callable[[Task], bool]) -> MethodEpisodes:
        """The episodes of some of the tasks."""
        tasks = {name: task for name, task in self.tasks.items() if keep(task)}
        return replace(self, steps=self.steps.of(tasks.values()), tasks=tasks)

    def trajectories(self) -> Iterator[Trajectory]:
        """The episodes as trajectories, without tokens and rewards, for code that reads actions in order."""
        late = pl.col("outcome") == TIMEOUT
        others = {"group_id": pl.lit(""), "policy": pl.lit(""), "seed": pl.lit(0), "state_key": pl.lit(None)}
        for rows in self.steps.stretches():
            whole = rows.with_columns(**others, terminated=~late, truncated=late)
            for part in whole.partition_by(EPISODE_KEY, maintain_order=True):
                yield from trajectories_of(part, "the episodes of a table")


def write_grades(path: Path, grades: pl.DataFrame) -> None:
    """Write a judge's grades of a run's answers: the policy, the episode, its answer, and the grade."""
    write_table(path, grades.select(list(_FILE)), "grades")


def read_grades(path: Path, policy: str, training_seed: int) -> pl.DataFrame:
    """One policy's grades, with the columns of ``GRADES``.

    Raises:
        StorageError: the file is damaged, or holds something else.
    """
    rows = scan_table(path, "grades", _FILE).filter(policy=policy)
    return rows.select(pl.lit(training_seed, pl.Int64).alias("training_seed"), pl.exclude("policy")).collect()
