"""A sample of the episodes that a training learns from: a few groups of a few steps.

All episodes would take gigabytes. Ten steps of the run, including the first and the last, are enough to see a
policy change. Each leaves the four groups whose returns differ most, since nothing is learned from a task
whose rollouts all have the same result. Groups are kept whole, with the episodes that ``algorithm.select``
left out and the further attempts that ``experience`` asked for.

A step's groups are written as soon as it has learned from them, into the folder of the checkpoints. A
training that resumes from a checkpoint finds the groups of earlier steps, and writes those of later steps
again with the same bytes. At the end all are joined. Taking the sample draws no random numbers and changes
nothing that training reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from skillpress.core.resume import ResumeStore
from skillpress.core.trajectory import Trajectory
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import FURTHER, LEFT_OUT, TEACHES, Batch, Floats
from skillpress.training.loop.describing.trained_episodes import ADVANTAGE_SCHEMA, TrainedEpisodes

STEPS = 10
"""The most training steps that leave groups."""
GROUPS = 4
"""Number of groups that such a step leaves, over all processes."""


def sampled_steps(steps: int) -> list[int]:
    """The training steps that leave groups: evenly spaced, including the first and the last."""
    if steps <= STEPS:
        return list(range(1, steps + 1))
    return [1 + (steps - 1) * number // (STEPS - 1) for number in range(STEPS)]


@dataclass(frozen=True)
class EpisodeSample:
    """One rank's part of taking the sample."""

    store: ResumeStore
    """Store of each step's groups until the end."""
    steps: Sequence[int]
    """The training steps that leave groups."""
    ranks: Ranks

    def take(self, step: int, played: Batch, batch: Batch, advantages: Floats) -> None:
        """Store this step's most varied groups, if it is one of ``steps``; all ranks call this.

        Args:
            batch: the episodes of ``played`` that teach, shaped.
            advantages: those of the decisions of ``batch``.
        """
        if step not in self.steps:
            return
        chosen, attempts = self._most_varied(batch), played.played_as(FURTHER)
        episodes = [each for each in played.played_as(TEACHES, LEFT_OUT) if each.group_id in chosen]
        episodes += [each for each in attempts if each.group_id.rpartition("/")[0] in chosen]
        lessons = _lessons(step, batch, advantages, episodes)
        found = self.ranks.gather([(episodes, lessons)])
        if self.ranks.rank == 0:
            rows = [row for _, part in found for row in part]
            frame = pl.DataFrame(rows, schema=ADVANTAGE_SCHEMA, orient="row")
            self._part(step).write([each for part, _ in found for each in part], frame)

    def write(self, into: TrainedEpisodes) -> None:
        """Write the joined groups of all steps; one rank calls this.

        Raises:
            StorageError: the part of a step is missing or damaged.
        """
        into.join([self._part(step) for step in self.steps])

    def _part(self, step: int) -> TrainedEpisodes:
        return TrainedEpisodes(self.store.part("training", step), self.store.part("advantages", step))

    def _most_varied(self, batch: Batch) -> set[str]:
        """This rank's groups among the step's most varied ones; of equal ones, those played first."""
        returns, rank = _returns(batch), self.ranks.rank
        mine = [
            (-float(np.var(returns[batch.group == group])), rank, int(group))
            for group in np.unique(batch.group[: batch.new])
        ]
        best = {group for _, owner, group in sorted(self.ranks.gather(mine))[:GROUPS] if owner == rank}
        pairs = zip(batch.group.tolist(), batch.episodes, strict=True)
        return {trajectory.group_id for group, trajectory in pairs if group in best}


def _returns(batch: Batch) -> Floats:
    """[trajectories] the sum of all rewards, those of single steps included, minus the penalty."""
    own = np.bincount(batch.trajectory, batch.own, minlength=len(batch.group))
    returns: Floats = batch.returns + own
    return returns


def _lessons(
    step: int, batch: Batch, advantages: Floats, episodes: Sequence[Trajectory]
) -> list[tuple[Any, ...]]:
    """Rows of :data:`ADVANTAGE_SCHEMA` for some episodes that this rank has played."""
    number = {(each.group_id, each.rollout_index): row for row, each in enumerate(batch.episodes)}
    first, returns = np.cumsum(batch.length) - batch.length, _returns(batch)
    taught = _per_decision(advantages, batch)
    rows: list[tuple[Any, ...]] = []
    for episode in episodes:
        row = number.get((episode.group_id, episode.rollout_index))
        for decision in range(len(episode.decisions)):
            key = (episode.task_id, episode.group_id, episode.rollout_index, decision, step)
            if row is None:
                rows.append((*key, False, None, None, None, None))
                continue
            whole = (float(returns[row]), float(batch.penalty[row]), float(batch.segments[row]))
            rows.append((*key, True, taught[int(first[row]) + decision], *whole))
    return rows


def _per_decision(advantages: Floats, batch: Batch) -> list[float | None]:
    """[decisions] the advantage of each, or its tokens' mean; None where nothing was sampled."""
    if advantages.ndim > 1:
        own = np.arange(advantages.shape[1]) < batch.tokens[:, None]
        advantages = np.where(own, advantages, 0.0).sum(axis=1) / np.maximum(batch.tokens, 1)
    pairs = zip(advantages.tolist(), batch.tokens.tolist(), strict=True)
    return [advantage if tokens else None for advantage, tokens in pairs]
