"""A replay buffer on disk, with a maximal staleness: training learns again from groups of earlier steps.

    agent.replay_buffer.add((X_k, th_k, A_k, R_{k+1}, X_{k+1}))

as in the formal language-agent interface (Language as a Universal Interface for Reinforcement Learning
Agents, section 1.6). The episodes of each step are written to a rollout file, ``replay-00000017.parquet``.
Its rows hold X_k as the exact prompt, th_k, A_k and R_{k+1} in its parts; X_{k+1} is the prompt of the next
row. To correct for their age, the rows also hold the log-probabilities under the weights that sampled, and
the version of these weights. They hold the environment's name for each state too, so that a replayed group
receives the same advantages as when it was new.

A step's batch has its new groups and some old ones. Old groups are whole, and are drawn uniformly from those
of all processes whose weights are at most ``staleness`` training steps behind the learner's. Each process
replays groups that it has played itself. A group is compared among its own rollouts, as when it was new; its
successes pay by the step's dictionary, see ``reward_shaping.py``. Left out: priorities (groups that teach
more are not drawn more often).

The files are next to the checkpoints, so a resumed run draws the same groups; steps that it plays again are
written again, with the same bytes. Files are deleted when no step after the last checkpoint can replay them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, iterate_rollouts, write_rollouts
from skillpress.core.seeds import generator
from skillpress.core.tables import scan_table
from skillpress.core.trajectory import Task, Trajectory
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import REPLAYED, TEACHES, Batch, batch_of

KIND = "replay"
"""The beginning of the files' names."""


@dataclass(frozen=True)
class ReplayBuffer:
    """The buffer of one process."""

    store: ResumeStore
    """The place of this process's files."""
    tasks: Mapping[str, Task]
    """The training tasks by their names."""
    groups: int
    """The most groups that are replayed in a step, over all processes."""
    staleness: int
    """A replayed group's weights are at most this many training steps behind the learner's."""
    seed: int
    ranks: Ranks

    def __call__(self, step: int, played: Batch) -> tuple[Batch, dict[str, float]]:
        """The batch of training step ``step``: what was played for it, then replayed episodes; and metrics.

        All processes call it together. It also adds the step's new episodes that teach to the buffer.

        Raises:
            StorageError: a file that the step may draw from is missing or damaged.
        """
        drawn = self._draw(step)
        again = [each for number, groups in sorted(drawn.items()) for each in self._read(number, groups)]
        write_rollouts(self.store.part(KIND, step), played.played_as(TEACHES))
        numbers = dict[str, int]()
        groups = [numbers.setdefault(each.group_id, len(numbers)) for each in again]
        if again:
            tasks = [self.tasks[each.task_id] for each in again]
            replayed = batch_of(again, groups, played.core_maximum, played.longest_response, tasks)
            played = Batch.joined([played, replace(replayed, role=np.full(len(again), REPLAYED))])
        return played, {"replay/groups": self.ranks.sum({"groups": float(len(numbers))})["groups"]}

    def forget(self, step: int) -> None:
        """Delete groups that no step after ``step`` can replay; no run may resume from an earlier step."""
        for number, path in self.store.parts(KIND):
            if number <= step - self.staleness:
                path.unlink(missing_ok=True)

    def _draw(self, step: int) -> dict[int, list[str]]:
        """Step to the groups of that step that this process replays."""
        # The learner has the weights of step - 1.
        oldest = step - 1 - self.staleness
        mine = [
            (number, group, self.ranks.rank)
            for number in range(max(1, oldest + 1), step)
            for group in self._groups(number, oldest)
        ]
        # ``group_by`` returns groups in any order, and the draw below is by place.
        everything = sorted(self.ranks.gather(mine))
        count = min(self.groups, len(everything))
        chosen = generator(self.seed, "replay", step).choice(len(everything), count, replace=False)
        drawn: dict[int, list[str]] = {}
        for number, group, rank in (everything[row] for row in chosen):
            if rank == self.ranks.rank:
                drawn.setdefault(number, []).append(group)
        return drawn

    def _groups(self, number: int, oldest: int) -> list[str]:
        """The groups of a step whose weights were made by training step ``oldest`` or later."""
        path = self.store.part(KIND, number)
        if not path.is_file():
            raise StorageError(
                f"{path}: missing, and the resumed training may replay it; delete "
                f"{self.store.folder.parent} to start from the beginning"
            )
        rows = scan_table(path, "rollouts", ROLLOUT_SCHEMA)  # not older versions: they may not name states
        # Episodes of a group may have begun under different weights; the oldest count.
        versions = rows.group_by("group_id").agg(pl.col("policy_version").min())
        found = versions.filter(pl.col("policy_version") >= oldest).select("group_id")
        return found.collect().to_series().to_list()

    def _read(self, number: int, groups: list[str]) -> Iterator[Trajectory]:
        return iterate_rollouts(self.store.part(KIND, number), pl.col("group_id").is_in(groups))
