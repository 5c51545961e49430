"""Demonstrations: a chef that knows only the game's answers, with detours that can be undone.

The chef decides by the rule of ``chef.py``. With probability ``detour_rate`` a step is a random one that can
be undone (nothing is cooked, cut or eaten), and the chef continues from the resulting state. If that does not
win within T, the game is tried without detours. If that fails too, the designer's walkthrough is returned,
which always wins. Imitation learns the rule's advice at each step, not the detours and not the walkthrough
(``AdvisingOracle``).
"""

from __future__ import annotations

from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.chef import next_action
from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.memory import CookingState
from skillpress.environments.textworld_cooking.parameters import CookingParameters

_HARMLESS = ("go", "open", "close", "take", "drop", "put", "insert")


class CookingOracle:
    """Solves a task in TextWorld's commands, never in more than ``max_steps`` of them."""

    def __init__(self, parameters: CookingParameters) -> None:
        self._max_steps = parameters.max_steps
        self._environment = TextWorldCooking(parameters)

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return the demonstration for this seed.

        Args:
            detour_rate: probability of a detour at a step.

        Raises:
            TaskError: the chef does not win within ``max_steps``, and the walkthrough is longer.
        """
        for rate in (detour_rate, 0.0) if detour_rate else (0.0,):
            played = self.cook(task, rate, seed)
            if played is not None:
                return played
        walkthrough = list(task.spec["walkthrough"])
        if len(walkthrough) > self._max_steps:
            raise TaskError(
                f"task {task.task_id} takes {len(walkthrough)} steps, more than the {self._max_steps} allowed"
            )
        return walkthrough

    def advise(self, state: AgentState) -> str | None:
        """The chef's action in this state, however it was reached; None if it knows none."""
        assert isinstance(state.info.state, CookingState), "the oracle is for cooking games"
        return next_action(state.info.state)

    def cook(self, task: Task, detour_rate: float, seed: int) -> list[str] | None:
        """The chef's actions; None if they do not win within ``max_steps``."""
        random, played = Random(seed), list[str]()
        _, info = self._environment.reset(task)
        while True:
            assert isinstance(info.state, CookingState)
            action = next_action(info.state)
            if action is None:
                return None
            if random.random() < detour_rate:
                harmless = [other for other in info.admissible if other.split()[0] in _HARMLESS]
                action = random.choice([other for other in harmless if other != action] or [action])
            _, terminated, truncated, info = self._environment.step(action)
            played.append(action)
            if terminated or truncated:
                return played if info.won else None
