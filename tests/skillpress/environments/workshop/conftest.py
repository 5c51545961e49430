"""A small workshop, its tasks, and a task whose piece has the shortcut of three contraptions."""

from __future__ import annotations

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.workshop.parameters import WorkshopParameters
from tests.support.environments.workshops import made, section


@pytest.fixture(scope="session")
def parameters() -> WorkshopParameters:
    return section()


@pytest.fixture(scope="session")
def tasks(parameters: WorkshopParameters) -> list[Task]:
    return made(parameters)


@pytest.fixture(scope="session")
def task() -> Task:
    spec = {
        "piece": ["red", "oak", "star"],
        "order": ["saw", "paint"],
        "shortcut": ["pull lever", "ring bell", "turn wheel"],
    }
    return Task("red-oak-star:saw,paint", "workshop", 0, spec, "train", "known/saw-paint")
