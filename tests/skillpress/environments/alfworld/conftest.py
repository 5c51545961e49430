"""The official games, if they are available, and one small game of each task type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.environment import Alfworld
from skillpress.environments.alfworld.games import find_tree
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.alfworld.tasks import game_task
from tests.support.environments.alfworld_transcripts import games_per_type


@pytest.fixture(scope="session")
def tree(alfworld_data: str) -> Path:
    return find_tree(alfworld_data)


@pytest.fixture(scope="session")
def parameters(alfworld_data: str) -> AlfworldParameters:
    return AlfworldParameters(name="alfworld", max_steps=50, data=alfworld_data)


@pytest.fixture(scope="session")
def environment(parameters: AlfworldParameters) -> Alfworld:
    return Alfworld(parameters)


@pytest.fixture(scope="session")
def six_tasks(tree: Path) -> list[Task]:
    """One training task of each type."""
    return [game_task(path, "train") for path in games_per_type(tree, "train", 1)]


@pytest.fixture(scope="session")
def walkthrough(tree: Path) -> Callable[[Task], list[str]]:
    """The stored solution of a task's game."""

    def read(task: Task) -> list[str]:
        game: dict[str, Any] = json.loads((tree / task.spec["game"]).read_text())
        return list(game["walkthrough"])

    return read
