"""Vector environments: many environments at once, each in a numbered slot.

An episode is begun and acted in by ``start`` and ``step``, which hand over and return at once; what the
environments say comes from ``completed``. ``SyncVectorEnv`` holds its environments in this process, which
is right where a step costs microseconds; ``worker_vector.py`` holds those that compute in worker processes,
``thread_vector.py`` those that wait (for a sandbox, for a server) in threads. A collector cannot tell which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task


class BrokenEnvironmentError(RuntimeError):
    """An environment cannot be started, does not answer in time, or does not keep to its contract; the
    message names the task."""

    def __init__(self, message: str, slot: int | None = None) -> None:
        """``slot``: where it was, if whoever raises it knows."""
        super().__init__(message)
        self.slot = slot


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an environment says after ``reset`` or ``step``."""

    observation: str
    terminated: bool
    truncated: bool
    info: Info


class VectorEnvironment(Protocol):
    """Environments in slots 0, 1, 2 ..., one episode in each.

    A slot is asked for one thing at a time. Every start and step has a deadline of the kind's own.
    """

    def start(self, tasks: Mapping[int, Task]) -> None:
        """Begin an episode of ``tasks[slot]`` in each of these slots, whatever was there before."""
        ...

    def step(self, actions: Mapping[int, str]) -> None:
        """Take ``actions[slot]`` in each of these slots."""
        ...

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """(slot, answer) of those that have started or stepped since; waits at most ``wait`` seconds for the
        first.

        Raises:
            BrokenEnvironmentError: a task cannot be started, or an environment is of no more use; the
                others should be aborted.
        """
        ...

    def abort(self) -> None:
        """Forget what is under way; nothing of it is ever returned, and its slots can be started anew."""
        ...

    def close(self) -> None:
        """Give back what the environments hold; they can be used no more."""
        ...


class SeparateEnvironments(VectorEnvironment, Protocol):
    """A vector environment whose slots fail and end one by one: what the others have said is not lost.

    After a ``BrokenEnvironmentError`` with a slot, that slot can be started anew and the others go on. A
    collector needs none of this, since a broken environment ends its collection."""

    def forget(self, slot: int) -> None:
        """End the episode in a slot that is not busy, and give back what its environment holds."""
        ...


class SyncVectorEnv:
    """Every slot's environment is an object of this process; its exceptions are raised as they are."""

    def __init__(self, make: Callable[[], Environment]) -> None:
        self._make = make
        self._environments: dict[int, Environment] = {}
        self._answers: list[tuple[int, StepResult]] = []

    def start(self, tasks: Mapping[int, Task]) -> None:
        """Reset these slots' environments now."""
        for slot, task in tasks.items():
            if slot not in self._environments:
                self._environments[slot] = self._make()
            observation, info = self._environments[slot].reset(task)
            self._answers.append((slot, StepResult(observation, False, False, info)))

    def step(self, actions: Mapping[int, str]) -> None:
        """Step these slots' environments now."""
        for slot, action in actions.items():
            self._answers.append((slot, StepResult(*self._environments[slot].step(action))))

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """What the calls since have given."""
        answers, self._answers = self._answers, []
        return answers

    def abort(self) -> None:
        """Forget what was not taken."""
        self._answers.clear()

    def close(self) -> None:
        """Forget the environments."""
        self._environments.clear()
