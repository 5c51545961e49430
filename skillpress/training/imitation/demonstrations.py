"""Demonstrations: an oracle plays tasks, and each of its steps is what a policy is to imitate.

A detour is a mistake that an oracle makes on purpose, so that demonstrations show how to recover from one. An
``AdvisingOracle`` can also say what it would have done instead. The policy then imitates that and not the
mistakes (Laskey et al. 2017, DART: noise in the demonstrator's actions, none in what is learned).

An environment in worker processes makes several demonstrations at once there. Environments that wait for
something outside make them in threads. Each demonstration is a pure function of its task and seed, and they
are returned in order, so the number of processes or threads changes only the time. This module does not
import torch, because workers import it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from skillpress.core.errors import TaskError
from skillpress.core.interface import (
    AgentState,
    Environment,
    Info,
    RememberingRendering,
    Rendering,
    StateUpdate,
)
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection
from skillpress.environments.section import AdvisingOracle, Oracle
from skillpress.rollouts.collection.worker_vector import cannot
from skillpress.rollouts.workers.pool import WorkerPool, cores
from skillpress.rollouts.workers.worker import Failure, WorkerLimits

_BATCH = 4
"""Demonstrations per message to a worker; few, so that progress is visible."""
PATIENCE = 16
"""Number of first demonstrations of which at least one must win its task."""
_THREADS = 8
"""Number of threads; they wait most of the time."""


@dataclass(frozen=True)
class DemonstratedStep:
    """One step of a demonstration."""

    state: AgentState
    """X_k, from which the prompt is made."""
    response: str
    """The response to learn."""
    played: str | None = None
    """The response that was played instead, in a detour; the next state follows from it."""


class Demonstration(NamedTuple):
    """The steps of one task that an oracle played."""

    steps: list[DemonstratedStep]
    won: bool


@dataclass(frozen=True)
class Demonstrator:
    """Makes demonstrations in one process; its parts can be pickled."""

    oracle: Oracle
    environment: Environment
    rendering: Rendering
    update_state: StateUpdate
    detour_rate: float

    def __call__(self, wish: tuple[Task, int]) -> Demonstration:
        """The demonstration of this task with this seed."""
        task, seed = wish
        return self._follow(task, self.oracle(task, self.detour_rate, seed))

    # Asked once: at every step, these questions about protocols took a quarter of a demonstration's time.
    @cached_property
    def _adviser(self) -> AdvisingOracle | None:
        return self.oracle if isinstance(self.oracle, AdvisingOracle) else None

    @cached_property
    def _remembering(self) -> RememberingRendering | None:
        return self.rendering if isinstance(self.rendering, RememberingRendering) else None

    def _follow(self, task: Task, words: Sequence[str]) -> Demonstration:
        observation, info = self.environment.reset(task)
        steps: list[DemonstratedStep] = []
        state = AgentState(task=task, observation=observation, info=info)
        for word in words:
            advised = None if self._adviser is None else self._adviser.advise(state)
            observation, _, _, info = self.environment.step(word)
            thought, played = self._answer(state, word, info)
            if advised is None or advised == word:
                steps.append(DemonstratedStep(state, played))
            else:
                _, response = self._answer(state, advised, replace(info, action=advised))
                steps.append(DemonstratedStep(state, response, played))
            state = self.update_state(state, thought, word, observation, info)
        return Demonstration(steps, info.won)

    def _answer(self, state: AgentState, word: str, info: Info) -> tuple[str, str]:
        """(thought, response). Oracles have no thoughts, but an agent's memory is written in a thought."""
        if self._remembering is not None:
            return self._remembering.remembered(state, word, info)
        return "", self.rendering.response(word, info)


def demonstrate(
    tasks: Sequence[Task],
    count: int,
    section: EnvironmentSection,
    rendering: Rendering,
    update_state: StateUpdate,
    detour_rate: float,
    seed: int,
    first: int = 0,
    processes: int | None = None,
    oracle: Oracle | None = None,
) -> Iterator[list[DemonstratedStep]]:
    """``count`` demonstrations; after the last task the first one follows again.

    Args:
        first: how many demonstrations exist already and are skipped.
        processes: number of worker processes, if the environment runs in workers; None means one per core.
        oracle: the demonstrator; None means the environment's own.

    Raises:
        BrokenEnvironmentError: a task's demonstration fails again and again; the message names it.
        TaskError: none of the first demonstrations wins its task.
    """

    def wish(number: int) -> tuple[Task, int]:
        return tasks[number % len(tasks)], derive(seed, "demonstration", number)

    make = partial(
        _demonstrator,
        oracle=oracle,
        section=section,
        rendering=rendering,
        update_state=update_state,
        detour_rate=detour_rate,
    )
    with closing(
        _played(make, wish, wanted=range(first, count), section=section, processes=processes)
    ) as shown:
        won = 0
        for number, demonstration in enumerate(shown, 1):
            won += demonstration.won
            if number == min(count - first, PATIENCE) and not won:
                raise TaskError(
                    f"imitation.demonstrations: none of the first {number} wins its task, such as "
                    f"{tasks[first % len(tasks)].task_id}, so imitation has nothing to learn: check what "
                    f"counts as won, and the oracle of environment {section.name}"
                )
            yield demonstration.steps


def _played(
    make: Callable[[], Demonstrator],
    wish: Callable[[int], tuple[Task, int]],
    wanted: range,
    section: EnvironmentSection,
    processes: int | None,
) -> Generator[Demonstration, None, None]:
    """The demonstrations of these numbers in order, made where the environment runs."""
    if section.hosting == "threads" and section.offers("make_shared"):
        shared = section.make_shared(_THREADS)
        own = [replace(make(), environment=shared()) for _ in range(_THREADS)]
        yield from _beside_each_other(own, wanted, wish, shared.close)
        return
    if section.hosting != "workers":
        yield from map(make(), map(wish, wanted))
        return
    size = processes or cores()
    numbers = [wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH)]
    pool = WorkerPool(make, size, WorkerLimits())
    try:
        done: dict[int, Demonstration] = {}
        following = wanted.start
        jobs = {worker: numbers[worker::size] for worker in range(size)}
        for number, found in pool.run(jobs, wish):
            if isinstance(found, Failure):
                raise cannot("be demonstrated", wish(number)[0], found)
            done[number] = found
            while following in done:
                yield done.pop(following)
                following += 1
    finally:
        pool.close()


def _beside_each_other(
    demonstrators: Sequence[Demonstrator],
    numbers: Sequence[int],
    wish: Callable[[int], tuple[Task, int]],
    close: Callable[[], None],
) -> Iterator[Demonstration]:
    """The demonstrations in order, as many at once as there are demonstrators; calls ``close`` at the end."""
    size = len(demonstrators)
    try:
        with ThreadPoolExecutor(size, thread_name_prefix="demonstrator") as threads:
            for start in range(0, len(numbers), size):
                together = numbers[start : start + size]
                yield from threads.map(
                    lambda demonstrator, number: demonstrator(wish(number)), demonstrators, together
                )
    finally:
        close()


def _demonstrator(
    oracle: Oracle | None,
    section: EnvironmentSection,
    rendering: Rendering,
    update_state: StateUpdate,
    detour_rate: float,
) -> Demonstrator:
    return Demonstrator(
        oracle=oracle or section.make_oracle(),
        environment=section.make(),
        rendering=rendering,
        update_state=update_state,
        detour_rate=detour_rate,
    )
