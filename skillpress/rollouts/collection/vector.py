"""Vector environments: many environments at once, each in a numbered slot.

``start`` begins episodes and ``step`` acts in them; both hand over their work and return immediately. The
environments' answers come from ``completed``. ``SyncVectorEnv`` holds its environments in this process, which
is right if a step takes microseconds. ``worker_vector.py`` runs environments that compute in worker
processes; ``thread_vector.py`` runs environments that wait (for a sandbox, for a server) in threads. A
collector treats them all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from skillpress.core.errors import UserError
from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task


class BrokenEnvironmentError(RuntimeError):
    """An environment cannot be started, does not answer in time, or violates its contract; the message names
    the task."""

    def __init__(self, message: str, slot: int | None = None) -> None:
        """``slot``: the slot of the environment, if the code that raises the error knows it."""
        super().__init__(message)
        self.slot = slot


class RefusedEnvironmentError(BrokenEnvironmentError, UserError):
    """A broken environment that the user can repair, for example by starting a server."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """An environment's answer to ``reset`` or ``step``."""

    observation: str
    terminated: bool
    truncated: bool
    info: Info


class VectorEnvironment(Protocol):
    """Environments in slots 0, 1, 2 ..., one episode in each.

    A slot has at most one open request. Every start and step has a deadline, which depends on the
    implementation.
    """

    def start(self, tasks: Mapping[int, Task]) -> None:
        """Begin an episode of ``tasks[slot]`` in each of these slots, whatever the slot held before."""
        ...

    def step(self, actions: Mapping[int, object]) -> None:
        """Take ``actions[slot]`` in each of these slots."""
        ...

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """Return (slot, answer) for each environment that has finished its start or step since the last call;
        wait at most ``wait`` seconds for the first.

        Raises:
            BrokenEnvironmentError: a task cannot be started, or an environment can no longer be used. The
                caller should abort the others.
        """
        ...

    def abort(self) -> None:
        """Forget all open requests. They are never answered, and their slots can be started again."""
        ...

    def close(self) -> None:
        """Release the environments' resources. The environments cannot be used afterwards."""
        ...


class SeparateEnvironments(VectorEnvironment, Protocol):
    """A vector environment whose slots fail and end one by one, without losing the answers of the others.

    After a ``BrokenEnvironmentError`` with a slot, that slot can be started again and the others continue. A
    collector does not need this, since a broken environment ends its collection.
    """

    def forget(self, slot: int) -> None:
        """End the episode in a slot that is not busy, and release its environment's resources."""
        ...


class SyncVectorEnv:
    """Holds every slot's environment as an object of this process. Their exceptions are raised unchanged."""

    def __init__(self, make: Callable[[], Environment[Any]]) -> None:
        self._make = make
        self._environments: dict[int, Environment[Any]] = {}
        self._answers: list[tuple[int, StepResult]] = []

    def start(self, tasks: Mapping[int, Task]) -> None:
        """Reset these slots' environments immediately."""
        for slot, task in tasks.items():
            if slot not in self._environments:
                self._environments[slot] = self._make()
            observation, info = self._environments[slot].reset(task)
            self._answers.append((slot, StepResult(observation, False, False, info)))

    def step(self, actions: Mapping[int, object]) -> None:
        """Step these slots' environments immediately."""
        for slot, action in actions.items():
            self._answers.append((slot, StepResult(*self._environments[slot].step(action))))

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """The results of the calls since the last ``completed``."""
        answers, self._answers = self._answers, []
        return answers

    def abort(self) -> None:
        """Forget the results that were not fetched."""
        self._answers.clear()

    def close(self) -> None:
        """Forget the environments."""
        self._environments.clear()
