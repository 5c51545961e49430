"""ALFWorld (Shridhar et al. 2021; ReuseRL, appendix D): a household task in a room described in words.

The engine is alfworld's. This class adds the step budget T, distinguishes the reasons why nothing happened,
and keeps the record that renderings show. A game ends when it is won or out of steps; it can never be lost
before. ``task.spec["game"]`` is the game's path below ``json_2.1.1``.

All returned values are plain (strings, tuples, frozen records), so they may be sent between processes. The
engine itself may not, so its ``hosting`` is ``workers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import printable

from gymnasium.spaces import Space, Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.actions import LONGEST, NOTHING_HAPPENS, Reason, read_command
from skillpress.environments.alfworld.engine import GameEngine, Scene
from skillpress.environments.alfworld.games import describe, find_tree
from skillpress.environments.alfworld.memory import Memory, first_memory, remember, task_of
from skillpress.environments.alfworld.parameters import AlfworldParameters

IDLE_VERBS = ("help", "inventory", "look")
"""Commands that are always admissible and change nothing."""


@dataclass(frozen=True)
class AlfworldState:
    """What a rendering may show. The agent has seen all of it."""

    goal: str
    """The goal, such as ``put a clean cloth in cabinet``."""
    memory: Memory
    steps: int
    """Number of steps taken so far."""


class Alfworld:
    """One game at a time."""

    action_space: Space[str] = Text(max_length=LONGEST, min_length=0, charset=printable)
    observation_space: Space[str] = Text(max_length=4096, charset=printable)

    def __init__(self, parameters: AlfworldParameters) -> None:
        """Find the games and start the engine."""
        self._max_steps = parameters.max_steps
        self._tree: Path = find_tree(parameters.data)
        self._engine = GameEngine()
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the game."""
        game = describe(str(task.spec.get("game")))
        self._scene: Scene = self._engine.reset(self._tree / game.path)
        self._goal = task_of(self._scene.feedback)
        self._memory = first_memory(self._scene.feedback)
        self._steps = 0
        self._over = False
        return self._scene.feedback, self._info(None, None)

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Carry out an action in either grammar (see ``actions.py``)."""
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        command, invalid = read_command(action)
        if command is not None and command not in self._scene.admissible:
            invalid = "not_admissible"
        observation = NOTHING_HAPPENS
        if command is not None and invalid is None:
            self._scene = self._engine.step(command)
            observation = self._scene.feedback
            self._memory = remember(self._memory, command, observation)
        terminated = self._scene.won
        truncated = not terminated and self._steps >= self._max_steps
        self._over = terminated or truncated
        return observation, terminated, truncated, self._info(command, invalid)

    def _info(self, command: str | None, invalid: Reason | None) -> Info:
        state = AlfworldState(self._goal, self._memory, self._steps)
        return Info(
            won=self._scene.won,
            lost=None,
            action=command,
            invalid=invalid,
            admissible=self._scene.admissible,
            state=state,
        )


def explorer_actions(info: Info) -> list[str]:
    """The admissible actions that have an effect: all except ``help``, ``inventory`` and ``look``."""
    return [action for action in info.admissible if action not in IDLE_VERBS]
