"""Where the worlds of a collector live.

A collector names its episodes by slots and asks for many of them at once; whether a slot's world is
an object of this process or of another one is not its affair. In this process is the default, and
right for worlds that cost microseconds; ``workers.py`` has the other kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from skillpress.interface import Environment, Info
from skillpress.trajectory import Task


class WorldError(ValueError):
    """A world cannot be started or does not keep to its contract; the message names the task."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a world says after ``reset`` or ``step``."""

    observation: str
    terminated: bool
    truncated: bool
    info: Info


class Worlds(Protocol):
    """Worlds in slots 0, 1, 2 ..., one episode in each."""

    def start(self, tasks: Mapping[int, Task]) -> dict[int, Answer]:
        """Begin an episode of ``tasks[slot]`` in each of these slots, whatever was there before.

        Raises:
            WorldError: a task cannot be started.
        """
        ...

    def step(self, actions: Mapping[int, str]) -> dict[int, Answer]:
        """Take ``actions[slot]`` in each of these slots."""
        ...

    def close(self) -> None:
        """Give back what the worlds hold; they can be used no more."""
        ...


class InProcess:
    """Every slot's world is an object of this process; its exceptions are raised as they are."""

    def __init__(self, make: Callable[[], Environment]) -> None:
        self._make = make
        self._worlds: dict[int, Environment] = {}

    def start(self, tasks: Mapping[int, Task]) -> dict[int, Answer]:
        """See :class:`Worlds`."""
        answers = {}
        for slot, task in tasks.items():
            if slot not in self._worlds:
                self._worlds[slot] = self._make()
            observation, info = self._worlds[slot].reset(task)
            answers[slot] = Answer(observation, False, False, info)
        return answers

    def step(self, actions: Mapping[int, str]) -> dict[int, Answer]:
        """See :class:`Worlds`."""
        return {slot: Answer(*self._worlds[slot].step(action)) for slot, action in actions.items()}

    def close(self) -> None:
        """Forget the worlds."""
        self._worlds.clear()
