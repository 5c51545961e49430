"""What one method did in one environment: the episodes that a cell of a table is computed from.

Several experiments of a method (training seeds) are laid together. A task that several of them played
is one task in every interval, whoever played it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from skillpress.evaluation.episodes import EPISODE_KEY, episode_table
from skillpress.trajectory import Step, Task, Trajectory

TIMEOUT = "timeout"
"""The outcome of an episode that was neither won nor lost within its step budget."""


@dataclass(frozen=True)
class Play:
    """All evaluation episodes of one method in one environment."""

    steps: pl.DataFrame
    """Rows of ``evaluation_steps``; ``group_id`` is ``<training seed>/<run>``."""
    tasks: Mapping[str, Task]
    """By id; those that were played."""
    votes: int = 1
    """k: episodes per task and run."""

    @cached_property
    def episodes(self) -> pl.DataFrame:
        """Rows of ``episode_table``."""
        return episode_table(self.steps)

    def where(self, keep: Callable[[Task], bool]) -> Play:
        """The episodes of some of the tasks."""
        tasks = {name: task for name, task in self.tasks.items() if keep(task)}
        return Play(self.steps.filter(pl.col("task_id").is_in(list(tasks))), tasks, self.votes)

    def trajectories(self) -> list[Trajectory]:
        """The episodes as trajectories, without tokens and rewards, for what reads actions in order."""
        return [
            Trajectory(
                task_id, group, index,
                tuple(
                    Step((), (), (), row["thought"], row["action"], row["observation"], row["invalid"], 0.0)
                    for row in part.iter_rows(named=True)
                ),
                part["won"][0], part["outcome"][0] != TIMEOUT, part["outcome"][0] == TIMEOUT,
                part["outcome"][0], part["policy_version"][0], 0,
            )
            for (group, task_id, index), part in self.steps.group_by(EPISODE_KEY, maintain_order=True)
        ]  # fmt: skip
