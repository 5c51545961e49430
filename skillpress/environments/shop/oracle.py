"""A demonstrator that knows the product: it searches for the instruction, opens it, chooses, and buys.

It plays short actions in the real environment, so every demonstration wins.
"""

from __future__ import annotations

from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.shop.environment import Shop, ShopState
from skillpress.environments.shop.parameters import ShopParameters
from skillpress.environments.shop.tasks import wanted_by


class ShopOracle:
    """Buys what the task asks for."""

    def __init__(self, section: ShopParameters) -> None:
        self._shop = Shop(section)
        self._max_steps = section.max_steps

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return short actions that win. A detour reads the features before the options are chosen.

        Raises:
            TaskError: the search for the instruction does not find the product in time, or an option that is
                asked for does not exist.
        """
        detour = Random(seed).random() < detour_rate
        words = self._played(task, detour)
        if words is None and detour:
            words = self._played(task, detour=False)
        if words is None:
            raise TaskError(f"task {task.task_id} cannot be won in {self._max_steps} short actions")
        return words

    def _played(self, task: Task, detour: bool) -> list[str] | None:
        _, info = self._shop.reset(task)
        words: list[str] = []
        while len(words) < self._max_steps:
            assert isinstance(info.state, ShopState), "the shop's state"
            word = self._next(info.state, task, detour)
            if word is None:
                return None
            words.append(word)
            info = self._shop.step(word)[3]
            if info.answer is not None:
                return words if info.won else None
        return None

    def _next(self, state: ShopState, task: Task, detour: bool) -> str | None:
        """The next short action; None if there is none."""
        wanted = wanted_by(task)
        if state.page == "search":
            return "search instruction"
        if state.page == "results":
            places = {each.asin: number for number, each in enumerate(state.listed, 1)}
            if wanted.asin in places:
                return f"open {places[wanted.asin]}"
            return "next" if len(state.found) > 10 * state.number else None
        if state.page != "product":
            return "previous"
        if detour and not state.inspected:
            return "features"
        for number, (name, value) in enumerate(state.values, 1):
            if wanted.options.get(name) == value != state.chosen.get(name):
                return f"choose {number}"
        return "buy"
