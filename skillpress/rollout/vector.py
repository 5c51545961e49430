"""Vector environments: many environments stepped together, each in a numbered slot.

As in gymnasium, ``SyncVectorEnv`` holds its environments in this process, which is right where a step
costs microseconds; ``worker_vector.py`` holds them in worker processes. A collector cannot tell which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from skillpress.interface import Environment, Info
from skillpress.trajectory import Task


class BrokenEnvironmentError(RuntimeError):
    """An environment cannot be started or does not keep to its contract; the message names the task."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an environment says after ``reset`` or ``step``."""

    observation: str
    terminated: bool
    truncated: bool
    info: Info


class VectorEnvironment(Protocol):
    """Environments in slots 0, 1, 2 ..., one episode in each."""

    def start(self, tasks: Mapping[int, Task]) -> dict[int, StepResult]:
        """Begin an episode of ``tasks[slot]`` in each of these slots, whatever was there before.

        Raises:
            BrokenEnvironmentError: a task cannot be started.
        """
        ...

    def step(self, actions: Mapping[int, str]) -> dict[int, StepResult]:
        """Take ``actions[slot]`` in each of these slots."""
        ...

    def close(self) -> None:
        """Give back what the environments hold; they can be used no more."""
        ...


class SyncVectorEnv:
    """Every slot's environment is an object of this process; its exceptions are raised as they are."""

    def __init__(self, make: Callable[[], Environment]) -> None:
        self._make = make
        self._environments: dict[int, Environment] = {}

    def start(self, tasks: Mapping[int, Task]) -> dict[int, StepResult]:
        """See :class:`VectorEnvironment`."""
        answers = {}
        for slot, task in tasks.items():
            if slot not in self._environments:
                self._environments[slot] = self._make()
            observation, info = self._environments[slot].reset(task)
            answers[slot] = StepResult(observation, False, False, info)
        return answers

    def step(self, actions: Mapping[int, str]) -> dict[int, StepResult]:
        """See :class:`VectorEnvironment`."""
        return {slot: StepResult(*self._environments[slot].step(action)) for slot, action in actions.items()}

    def close(self) -> None:
        """Forget the environments."""
        self._environments.clear()
