"""Groups of earlier steps, learned from again: a buffer on disk, with a maximal staleness.

    agent.replay_buffer.add((X_k, th_k, A_k, R_{k+1}, X_{k+1}))

as the formal language-agent interface has it (Language as a Universal Interface for Reinforcement Learning
Agents, section 1.6). What a step has learned from is written as a rollout file, ``replay-00000017.parquet``.
Its rows hold X_k as the exact prompt, th_k, A_k and R_{k+1} in its parts; X_{k+1} is the prompt of the next
row. :func:`transitions` puts them together. Beside them stand the log-probabilities under the weights that
sampled, and which weights these were: what a method needs to correct for their age. So does the environment's
name for each state: a replayed group gets the advantages that it got when it was new.

A step's batch is its new groups and some old ones: whole groups, drawn evenly from those of all processes
whose weights are at most ``staleness`` training steps behind the learner's. Each process replays what it has
played itself. A group is judged among its own rollouts, as when it was new; its successes pay by the step's
dictionary, see ``reward_shaping.py``. Left out: priorities (what teaches most is not drawn more often).

The files lie beside the checkpoints, so that a resumed run draws the same groups; what it plays again it
writes again, with the same bytes. They are deleted when no step behind the last checkpoint can replay them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import polars as pl

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, iterate_rollouts, write_rollouts
from skillpress.core.seeds import generator
from skillpress.core.tables import scan_table
from skillpress.core.trajectory import RewardPart, Task, TokenIds, Trajectory
from skillpress.learn.algorithms.batch import Batch, batch_of
from skillpress.learn.training.groups import Collected
from skillpress.play.workers.distributed import Ranks

KIND = "replay"
"""How the names of the files begin."""


@dataclass(frozen=True)
class Transition:
    """What the buffer remembers of one decision."""

    state: TokenIds
    """X_k as the policy saw it: the prompt's tokens; empty where the prompt did not fit."""
    thought: str
    """th_k."""
    action: str
    """A_k; empty for a summary, which the agent writes for itself."""
    reward: tuple[RewardPart, ...]
    """R_{k+1}, in the parts by which the agent judged its step."""
    next_state: TokenIds | None
    """X_{k+1}; None behind the last decision of an episode."""


def transitions(trajectories: Iterable[Trajectory]) -> Iterator[Transition]:
    """The decisions of episodes, one after the other: ``transitions(iterate_rollouts(path))``."""
    for trajectory in trajectories:
        for decision, following in pairwise((*trajectory.decisions, None)):
            assert decision is not None
            yield Transition(
                state=decision.prompt_ids,
                thought=decision.thought,
                action=decision.action,
                reward=decision.reward_parts,
                next_state=None if following is None else following.prompt_ids,
            )


@dataclass(frozen=True)
class ReplayBuffer:
    """One process's part of the buffer."""

    store: ResumeStore
    """Where this process's files lie."""
    tasks: Mapping[str, Task]
    """The training tasks by their names."""
    groups: int
    """Groups that are replayed in a step at most, over all processes."""
    staleness: int
    """Training steps that a replayed group's weights are behind the learner's at most."""
    seed: int
    ranks: Ranks

    def __call__(self, step: int, collected: Collected) -> tuple[Collected, dict[str, float]]:
        """The batch of training step ``step``: what was played for it, then what is replayed; and metrics.

        All processes call it together. What was played for the step is in the buffer from then on.

        Raises:
            StorageError: a file that the step may draw from is missing or damaged.
        """
        drawn = self._draw(step)
        again = [each for number, groups in sorted(drawn.items()) for each in self._read(number, groups)]
        write_rollouts(self.store.part(KIND, step), collected.trajectories)
        numbers: dict[str, int] = {}
        groups = [numbers.setdefault(each.group_id, len(numbers)) for each in again]
        found = replace(
            collected,
            tasks=[*collected.tasks, *(self.tasks[each.task_id] for each in again)],
            trajectories=[*collected.trajectories, *again],
            batch=Batch.joined([collected.batch, batch_of(again, groups, collected.batch.core_maximum)]),
            replayed=len(again),
        )
        return found, {"replay/groups": self.ranks.sum({"groups": float(len(numbers))})["groups"]}

    def forget(self, step: int) -> None:
        """Delete what no step behind ``step`` may replay; only when no run goes on from a step before."""
        for number, path in self.store.parts(KIND):
            if number <= step - self.staleness:
                path.unlink(missing_ok=True)

    def _draw(self, step: int) -> dict[int, list[str]]:
        """Step to the groups of it that this process replays."""
        oldest = step - 1 - self.staleness
        mine = [
            (number, group, self.ranks.rank)
            for number in range(max(1, oldest + 1), step)
            for group in self._groups(number, oldest)
        ]
        everything = sorted(self.ranks.gather(mine))
        count = min(self.groups, len(everything))
        chosen = generator(self.seed, "replay", step).choice(len(everything), count, replace=False)
        drawn: dict[int, list[str]] = {}
        for number, group, rank in (everything[row] for row in chosen):
            if rank == self.ranks.rank:
                drawn.setdefault(number, []).append(group)
        return drawn

    def _groups(self, number: int, oldest: int) -> list[str]:
        """The groups of a step whose weights are of training step ``oldest`` or later."""
        path = self.store.part(KIND, number)
        if not path.is_file():
            raise StorageError(
                f"{path}: missing, and training goes on from a step that may replay it; delete "
                f"{self.store.folder.parent} to start afresh"
            )
        rows = scan_table(path, "rollouts", ROLLOUT_SCHEMA)  # no older version: it may not name the states
        found = rows.filter(pl.col("policy_version") >= oldest).select("group_id")
        return found.unique().collect().to_series().to_list()

    def _read(self, number: int, groups: list[str]) -> Iterator[Trajectory]:
        return iterate_rollouts(self.store.part(KIND, number), pl.col("group_id").is_in(groups))
