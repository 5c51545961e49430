"""Chooses the tasks of a training step and plays them until enough groups teach something.

Everything is a function of the experiment's seed and the step, so a resumed run has nothing to restore. A
task that comes twice in a step (where two passes over the tasks meet) gives two groups with different seeds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, islice

import numpy as np

from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task, Trajectory
from skillpress.rollouts.collection import CollectionStatistics, Collector, Requests, requests
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Batch, batch_of
from skillpress.training.experience.experience import Experience


@dataclass(frozen=True)
class Group:
    """One task's rollouts of one step."""

    task: Task
    visit: int
    """Number of times that the same step has played the task before."""

    def requests(self, size: int, seed: int, step: int) -> Requests:
        """Requests for its episodes. Another visit has other seeds and another group."""
        place = ("train", step, *(("visit", self.visit) if self.visit else ()))
        return requests([self.task], size, seed, *place, policy="trained")


@dataclass
class PlayedGroups:
    """Whole groups, one after another."""

    tasks: list[Task]
    """``tasks[i]`` is the task of trajectory i."""
    trajectories: list[Trajectory]
    further: list[Trajectory]
    """The further attempts that ``experience`` asked for."""


Play = Callable[[Sequence[Group], int], PlayedGroups]
"""Maps (groups that are needed, number of times that the step has asked before) to as many played groups."""


@dataclass
class Collected:
    """The episodes that one process learns from in a step, and all that it played for it."""

    tasks: list[Task] = field(default_factory=list)
    """``tasks[i]`` is the task of trajectory i."""
    trajectories: list[Trajectory] = field(default_factory=list)
    """The trajectories that teach."""
    batch: Batch = field(default_factory=lambda: batch_of([], [], 0.0, 0), compare=False)
    """The same trajectories as arrays, before shaping."""
    played: list[Trajectory] = field(default_factory=list)
    """All played trajectories, including those that were not selected."""
    further: list[Trajectory] = field(default_factory=list)
    """The further attempts that ``experience`` asked for; these are not rollouts of the algorithm."""
    replayed: int = 0
    """Number of ``trajectories`` that were played for earlier steps (``replay.py``); they are the last
    ones."""
    speed: dict[str, float] = field(default_factory=dict)
    """Metrics of this process's speed."""
    too_old: int | None = None
    """Number of groups that were dropped since the last step because their weights were too old
    (``continuing.py``); None where none can be."""

    @property
    def new(self) -> int:
        """Number of ``trajectories`` that were played for this step; they are the first ones."""
        return len(self.trajectories) - self.replayed

    def add(self, other: Collected) -> None:
        """Add the episodes of other groups of the same step."""
        self.batch = Batch.joined([self.batch, other.batch]) if self.played else other.batch
        self.tasks += other.tasks
        self.trajectories += other.trajectories
        self.played += other.played
        self.further += other.further


@dataclass(frozen=True)
class GroupCollector:
    """Plays a step's groups, and further groups in place of those that the algorithm drops."""

    tasks: Sequence[Task]
    collector: Collector
    algorithm: Algorithm
    groups: int
    """Groups per step, of all processes."""
    size: int
    """Episodes per group."""
    core_maximum: float
    longest_response: int
    """The most tokens of a response."""
    seed: int
    ranks: Ranks
    experience: Experience | None = None
    """The method that asks for further attempts; None asks for no attempts."""

    def __call__(self, step: int, version: int) -> Collected:
        """This process's share of training step ``step`` (from 1).

        It does not communicate with other processes, so it can run in a second thread. Messages of two
        threads could arrive in a different order in each process.

        Args:
            version: version of the weights that the engine samples from.
        """
        started, before = time.perf_counter(), replace(self.collector.statistics)
        collected = self.gather(step, lambda wanted, attempt: self._play(wanted, step, version))
        collected.speed = speed(self.collector.statistics - before, time.perf_counter() - started)
        return collected

    def plan(self, step: int) -> tuple[list[Group], Iterator[Group]]:
        """This process's groups of a step, and endless further groups in place of those that are dropped."""
        first = groups_of_step(self.tasks, self.groups, step, self.seed)
        share = self.ranks.share(len(first))
        further = further_groups(self.tasks, first, step, self.seed)
        mine = islice(further, self.ranks.rank, None, self.ranks.size)
        return first[share.start : share.stop], mine

    def gather(self, step: int, play: Play) -> Collected:
        """This process's share of a step, from groups that ``play`` gives, until enough of them teach."""
        wanted, further = self.plan(step)
        collected, missing = Collected(), len(wanted)
        share = missing
        for attempt in range(1 + self.algorithm.select.most_refills):
            if attempt:
                wanted = list(islice(further, missing))
            collected.add(self._selected(play(wanted, attempt), step, attempt))
            missing = share - collected.batch.groups
            if not missing:
                break
        return collected

    def _play(self, wanted: Sequence[Group], step: int, version: int) -> PlayedGroups:
        """Play some groups and the further attempts that they ask for."""
        asked = [request for group in wanted for request in group.requests(self.size, self.seed, step)]
        tasks, trajectories = [each.task for each in asked], self.collector.collect(asked, version)
        further: list[Trajectory] = []
        if self.experience is not None:
            further = self.collector.collect(self.experience.attempts(tasks, trajectories), version)
        return PlayedGroups(tasks, trajectories, further)

    def _selected(self, played: PlayedGroups, step: int, attempt: int) -> Collected:
        """Keep the episodes that the algorithm selects."""
        groups = [index // self.size for index in range(len(played.trajectories))]
        batch = batch_of(played.trajectories, groups, self.core_maximum, self.longest_response)
        seed = derive(self.seed, "select", step, attempt, self.ranks.rank)
        rows = np.flatnonzero(self.algorithm.select.kept(batch, seed))
        return Collected(
            tasks=[played.tasks[row] for row in rows],
            trajectories=[played.trajectories[row] for row in rows],
            batch=batch.select(rows),
            played=played.trajectories,
            further=played.further,
        )


def groups_of_step(tasks: Sequence[Task], count: int, step: int, seed: int) -> list[Group]:
    """The groups of training step ``step`` (from 1): the next ``count`` of endless shuffled passes."""
    positions = range((step - 1) * count, step * count)
    passes = {position // len(tasks) for position in positions}
    orders = {number: generator(seed, "task order", number).permutation(len(tasks)) for number in passes}
    visits: Counter[int] = Counter()
    groups = []
    for position in positions:
        index = int(orders[position // len(tasks)][position % len(tasks)])
        groups.append(Group(tasks[index], visits[index]))
        visits[index] += 1
    return groups


def further_groups(tasks: Sequence[Task], first: Sequence[Group], step: int, seed: int) -> Iterator[Group]:
    """Endless groups after the step's ``first``: tasks that it has not played come before the others."""
    visits = Counter(group.task.task_id for group in first)
    order = [tasks[index] for index in generator(seed, "refill", step).permutation(len(tasks))]
    unplayed = [task for task in order if task.task_id not in visits]
    for task in chain(unplayed, cycle(order)):
        yield Group(task, visits[task.task_id])
        visits[task.task_id] += 1


def speed(done: CollectionStatistics, seconds: float) -> dict[str, float]:
    """Metrics of play; empty if no environment made a step."""
    moves = done.environment_steps
    if not moves:
        return {}
    found = {
        "decisions_per_environment_step": done.decisions / moves,
        "environment_steps_per_second": moves / seconds,
    }
    prefilled = done.prefilled_tokens
    return {**found, "prefill_tokens_per_environment_step": prefilled / moves} if prefilled else found
