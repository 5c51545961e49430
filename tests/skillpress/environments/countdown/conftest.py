"""The default experiment's puzzles, and the paper's worked example (E.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.countdown.parameters import CountdownParameters
from tests.support.environments.small_games import COUNTDOWN

MakeTask = Callable[..., Task]


@pytest.fixture(scope="session")
def parameters() -> CountdownParameters:
    return COUNTDOWN


@pytest.fixture(scope="session")
def make_task() -> MakeTask:
    def make(target: int, *numbers: int, split: str = "train") -> Task:
        name = f"{target}={','.join(map(str, sorted(numbers)))}"
        return Task(name, "countdown", 0, {"target": target, "numbers": list(numbers)}, split)

    return make


@pytest.fixture(scope="session")
def worked_example(make_task: MakeTask) -> Task:
    return make_task(54, 80, 2, 28, 1)
