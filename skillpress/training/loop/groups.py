"""Chooses the tasks of a training step and plays them until enough groups teach something.

Everything is a function of the experiment's seed and the step, so a resumed run has nothing to restore. A
task that comes twice in a step (where two passes over the tasks meet) gives two groups with different seeds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from typing import Any

import numpy as np

from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task, Trajectory
from skillpress.rollouts.collection import (
    CollectionStatistics,
    Collector,
    EpisodeRequest,
    Requests,
    requests,
)
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import FURTHER, LEFT_OUT, TEACHES, Batch, batch_of
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


Play = Callable[[Sequence[Group], int], tuple[Batch, Batch]]
"""Maps (groups that are needed, number of times that the step has asked before) to as many whole groups, one
after another, and the further attempts that ``experience`` asked for."""


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
    side_calls: bool = True
    """Whether training learns the calls that a program makes beside its work."""
    experience: Experience | None = None
    """The method that asks for further attempts; None asks for no attempts."""

    def __call__(self, step: int, version: int) -> tuple[Batch, dict[str, float]]:
        """This process's share of training step ``step`` (from 1), and metrics of its speed.

        It does not communicate with other processes, so it can run in a second thread. Messages of two
        threads could arrive in a different order in each process.

        Args:
            version: version of the weights that the engine samples from.
        """
        started, before = time.perf_counter(), replace(self.collector.statistics)
        played = self.gather(step, lambda wanted, attempt: self._play(wanted, step, version))
        return played, speed(self.collector.statistics - before, time.perf_counter() - started)

    def plan(self, step: int) -> tuple[list[Group], Iterator[Group]]:
        """This process's groups of a step, and endless further groups in place of those that are dropped."""
        first = groups_of_step(self.tasks, self.groups, step, self.seed)
        share = self.ranks.share(len(first))
        further = further_groups(self.tasks, first, step, self.seed)
        # Ranks take turns, so no two replace a group by the same one, and none has to ask the others.
        mine = islice(further, self.ranks.rank, None, self.ranks.size)
        return first[share.start : share.stop], mine

    def gather(self, step: int, play: Play) -> Batch:
        """This process's share of a step, from groups that ``play`` gives, until enough of them teach."""
        wanted, further = self.plan(step)
        found: list[Batch] = []
        for attempt in range(1 + self.algorithm.select.most_refills):
            played, attempts = play(wanted, attempt)
            # With the rank: each numbers its groups from 0, and groups of one number must not share a draw.
            seed = derive(self.seed, "select", step, attempt, self.ranks.rank)
            kept = self.algorithm.select.kept(played, seed)
            found += [replace(played, role=np.where(kept, TEACHES, LEFT_OUT)), attempts]
            # Groups are counted, not episodes: a selection may keep a part of a group.
            wanted = list(islice(further, len(wanted) - len(np.unique(played.group[kept]))))
            if not wanted:
                break
        # If all of them are empty, the first is the empty batch.
        return Batch.joined([batch for batch in found if len(batch.group)] or found[:1])

    def batch(self, asked: Sequence[EpisodeRequest], played: Sequence[Trajectory]) -> Batch:
        """The episodes of whole groups that were asked for, one after another."""
        groups = [index // self.size for index in range(len(played))]
        tasks = [request.task for request in asked]
        played = played if self.side_calls else [_without_side_calls(each) for each in played]
        return batch_of(played, groups, self.core_maximum, self.longest_response, tasks)

    def further(self, asked: Sequence[EpisodeRequest], played: Sequence[Trajectory]) -> Batch:
        """The episodes of these requests for further attempts."""
        batch = self.batch(asked, played)
        return replace(batch, role=np.full(len(played), FURTHER))

    def _play(self, wanted: Sequence[Group], step: int, version: int) -> tuple[Batch, Batch]:
        """Play some groups and the further attempts that they ask for."""
        asked = [request for group in wanted for request in group.requests(self.size, self.seed, step)]
        trajectories = self.collector.collect(asked, version)
        again: list[EpisodeRequest] = []
        if self.experience is not None:
            again = self.experience.attempts([each.task for each in asked], trajectories)
        attempts = self.collector.collect(again, version) if again else []
        return self.batch(asked, trajectories), self.further(again, attempts)


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


def _without_side_calls(played: Trajectory) -> Trajectory:
    """The episode as if nothing had been sampled at its calls beside the work: nothing learns from them."""
    nothing: dict[str, Any] = {
        "prompt_ids": (),
        "response_ids": (),
        "logprobs": NO_LOGPROBS,
        "weight_spans": (),
    }
    steps = (replace(step, **nothing) if step.kind == "side" else step for step in played.steps)
    return replace(played, steps=tuple(steps))
