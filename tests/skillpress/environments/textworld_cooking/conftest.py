"""A few real games, compiled once per session: one of each kind that the tests need."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.design import HARD, GameSettings
from skillpress.environments.textworld_cooking.environment import TextWorldCooking
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.environments.textworld_cooking.tasks import Designed, describe, task_of


def first(settings: GameSettings, fits: Callable[[Task], bool]) -> Task:
    """The matching game with the smallest seed."""
    games = (task_of(describe(settings, seed), "train") for seed in count())
    return next(task for task in games if fits(task))


@pytest.fixture(scope="session")
def cooking_games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("games")


@pytest.fixture(scope="session")
def cooking_parameters(cooking_games: Path) -> CookingParameters:
    return CookingParameters(name="textworld_cooking", max_steps=40, games=str(cooking_games))


@pytest.fixture(scope="session")
def environment(cooking_parameters: CookingParameters) -> TextWorldCooking:
    return TextWorldCooking(cooking_parameters)


@pytest.fixture(scope="session")
def cook_and_cut() -> Task:
    """A simple game whose ingredient must be fried or roasted, and cut, and can be eaten raw."""
    return first(GameSettings(1, 1, True, True), lambda task: task.spec["ingredients"][0][0] in RAW_FOODS)


@pytest.fixture(scope="session")
def trap() -> Task:
    """A simple game with food that is already cooked, and nothing to cut."""
    return first(GameSettings(1, 1, False, False), lambda task: task.spec["trap"])


@pytest.fixture(scope="session")
def eaten_as_it_is() -> Task:
    """A simple game whose cookbook has no direction for its ingredient."""
    return first(
        GameSettings(1, 1, False, False), lambda task: task.spec["ingredients"][0][1:] == ["raw", "uncut"]
    )


@pytest.fixture(scope="session")
def hard() -> Task:
    """A game of two ingredients that begins outside the kitchen."""
    return first(HARD, lambda task: any(step.startswith("go ") for step in task.spec["walkthrough"][:3]))


@pytest.fixture(scope="session")
def designed() -> Callable[[GameSettings, int], Designed]:
    return describe


RAW_FOODS = frozenset({"carrot", "red apple", "banana", "lettuce", "white onion", "red onion", "tomato"})
