"""Small games that are registered with gymnasium, like third-party ones."""

from __future__ import annotations

from string import printable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, Text

DOORS = ("left", "right", "middle")


class Doors(gymnasium.Env[str, str]):
    """A prize is behind one of three doors in each of ``rooms`` rooms; a wrong door ends the game."""

    def __init__(self, rooms: int = 2, fickle: bool = False) -> None:
        self.action_space = Text(max_length=12, charset=printable)
        self.observation_space = Text(max_length=80, charset=printable)
        self._rooms, self._fickle, self._starts = rooms, fickle, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._starts += 1
        self._prizes = [DOORS[int(number)] for number in self.np_random.integers(3, size=self._rooms)]
        self._room = 0
        start = f"start {self._starts}" if self._fickle else "start"
        return f"{start}: the prize smells of {self._prizes[0]}.", self._facts("")

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action not in DOORS:
            return "That is no door.", 0.0, False, False, self._facts(action) | {"refused": True}
        if action != self._prizes[self._room]:
            return "A goat.", -1.0, True, False, self._facts(action) | {"outcome": "lost"}
        self._room += 1
        if self._room == self._rooms:
            return "All prizes.", 1.0, True, False, self._facts(action) | {"success": True}
        return (
            f"A prize! The next smells of {self._prizes[self._room]}.",
            0.5,
            False,
            False,
            self._facts(action),
        )

    def _facts(self, action: str) -> dict[str, Any]:
        return {"doors": list(DOORS), "said": f"open {action}", "alive": True}


class Numbers(gymnasium.Env[np.int64, np.int64]):
    """Its observations are not texts."""

    def __init__(self) -> None:
        self.action_space = self.observation_space = Discrete(2)


gymnasium.register("tests/Doors-v0", f"{__name__}:Doors")
gymnasium.register("tests/ShortDoors-v0", f"{__name__}:Doors", max_episode_steps=1)
gymnasium.register("tests/Numbers-v0", f"{__name__}:Numbers")
gymnasium.register("tests/Unmade-v0", f"{__name__}:Unmade")


def takes_nothing() -> None:
    """Not an oracle: an oracle is made from a section."""


class OpensTheRightDoors:
    """An oracle that ignores its section."""

    def __init__(self, section: Any) -> None:
        self._game = Doors(**section.kwargs)

    def __call__(self, task: Any, detour_rate: float, seed: int) -> list[str]:
        self._game.reset(seed=task.seed)
        return list(self._game._prizes)
