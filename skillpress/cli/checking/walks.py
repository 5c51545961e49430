"""Episodes of an environment under trial, with everything that it returned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from skillpress.core.interface import AgentState, Environment, Info
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection
from skillpress.experiment.experiment import Experiment

AT_ONCE = 2
"""Number of environments that exist at the same time."""


@dataclass(frozen=True)
class StepAnswer:
    """What an environment returned for a reset or a step."""

    observation: str
    terminated: bool
    truncated: bool
    info: Info

    def facts(self) -> dict[str, object]:
        """Everything that must be the same when the episode is repeated, except the private state."""
        info = self.info
        return {
            "the observation": self.observation,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "won": info.won,
            "lost": info.lost,
            "action": info.action,
            "invalid": info.invalid,
            "admissible": tuple(info.admissible),
            "measures": dict(info.measures),
            "state_key": info.state_key,
        }


@dataclass(frozen=True)
class Walk:
    """One episode: the result of the reset, then one per action. It stops where the environment ends it."""

    task: Task
    actions: tuple[Any, ...]
    answers: tuple[StepAnswer, ...]
    seconds: float
    """Time spent in ``step``."""
    planned: int | None = None
    """How many actions a demonstrator planned; None for a random walk."""

    @property
    def last(self) -> StepAnswer:
        """The result of the last step or, without steps, of the reset."""
        return self.answers[-1]

    @property
    def won(self) -> bool:
        """Whether the goal was reached within the step budget."""
        return self.last.info.won


@dataclass(frozen=True)
class Subject:
    """The environment under trial."""

    experiment: Experiment
    tasks: Sequence[Task]
    make: Callable[[], Environment[Any]]

    @property
    def section(self) -> EnvironmentSection:
        """Its section of params.yaml."""
        return self.experiment.params.environment

    @property
    def patience(self) -> int:
        """An episode that does not end is stopped after this many steps, one more than the step budget."""
        return self.section.max_steps + 1

    def explore(self, environment: Environment[Any], task: Task) -> Walk:
        """An episode of the random explorer."""
        seed = self.experiment.params.seed

        def draw(step: int, info: Info) -> Any:
            choices = self.section.explorer_actions(info)
            if not choices:
                return None
            return choices[derive(seed, "check", task.task_id, step) % len(choices)]

        return _walk(environment, task, draw, self.patience)

    def follow(self, environment: Environment[Any], task: Task, actions: Sequence[Any]) -> Walk:
        """An episode of given actions."""

        def next_one(step: int, info: Info) -> Any:
            return actions[step] if step < len(actions) else None

        walk = _walk(environment, task, next_one, self.patience)
        return replace(walk, planned=len(actions))

    def first_prompt(self, answer: StepAnswer, task: Task) -> str:
        """The prompt of an episode's first step."""
        state = AgentState(task=task, observation=answer.observation, info=answer.info)
        return self.experiment.rendering.prompt(state)


def _walk(
    environment: Environment[Any], task: Task, choose: Callable[[int, Info], Any], patience: int
) -> Walk:
    observation, info = environment.reset(task)
    answers = [StepAnswer(observation, False, False, info)]
    actions: list[Any] = []
    seconds = 0.0
    while not (answers[-1].terminated or answers[-1].truncated) and len(actions) < patience:
        action = choose(len(actions), answers[-1].info)
        if action is None:
            break
        started = time.perf_counter()
        answers.append(StepAnswer(*environment.step(action)))
        seconds += time.perf_counter() - started
        actions.append(action)
    return Walk(task, tuple(actions), answers=tuple(answers), seconds=seconds)


@contextmanager
def environments(section: EnvironmentSection) -> Iterator[Callable[[], Environment[Any]]]:
    """A function that makes environments in this process; what they share is freed at the end."""
    if not section.offers("make_shared"):
        yield section.make
        return
    shared = section.make_shared(AT_ONCE)
    try:
        yield shared
    finally:
        shared.close()
