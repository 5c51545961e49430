"""Demonstrations: the designer's walkthrough, with detours that do no harm.

The walkthrough reads the cookbook, then fetches, cooks, cuts, prepares and eats. A detour is a random
admissible action put before one of its steps, with the way back if it was a step into another room.
Whether it does harm is found out by playing: it stays only if the rest of the walkthrough is still
carried out to the win within T steps. So a policy that learns from demonstrations sees states off the
shortest way, and how to go on from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.errors import TaskError
from skillpress.trajectory import Task

_WAY_BACK = {
    "go north": "go south",
    "go south": "go north",
    "go east": "go west",
    "go west": "go east",
}


class CookingOracle:
    """Solves a task in TextWorld's commands, never in more than ``max_steps`` of them."""

    def __init__(self, parameters: CookingParameters) -> None:
        self._max_steps = parameters.max_steps
        self._environment = TextWorldCooking(parameters)

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """The demonstration that this seed gives.

        Args:
            detour_rate: share of the walkthrough's steps before which a detour is tried.

        Raises:
            TaskError: the task's walkthrough takes more than ``max_steps`` steps.
        """
        walkthrough = list(task.spec["walkthrough"])
        if len(walkthrough) > self._max_steps:
            raise TaskError(f"task {task.task_id} takes {len(walkthrough)} steps, not {self._max_steps}")
        random = Random(seed)
        said = walkthrough
        for position in reversed(range(len(walkthrough))):  # so that what stands before is unchanged
            if random.random() < detour_rate:
                detour = self._detour(task, walkthrough[:position], random)
                tried = [*said[:position], *detour, *said[position:]]
                said = tried if self._wins(task, tried) else said
        return said

    def _detour(self, task: Task, past: Sequence[str], random: Random) -> list[str]:
        _, info = self._environment.reset(task)
        for action in past:
            *_, info = self._environment.step(action)
        action = random.choice(info.admissible)
        return [action, _WAY_BACK[action]] if action in _WAY_BACK else [action]

    def _wins(self, task: Task, actions: Sequence[str]) -> bool:
        """Whether every action is carried out and the last one wins."""
        if len(actions) > self._max_steps:
            return False
        self._environment.reset(task)
        for number, action in enumerate(actions, 1):
            _, terminated, _, info = self._environment.step(action)
            if info.invalid is not None or terminated:
                return info.won and number == len(actions)
        return False
