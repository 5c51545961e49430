"""The official games, if they are available."""

from __future__ import annotations

import pytest

from skillpress.environments.alfworld.environment import Alfworld
from skillpress.environments.alfworld.parameters import AlfworldParameters


@pytest.fixture(scope="session")
def parameters(alfworld_data: str) -> AlfworldParameters:
    return AlfworldParameters(name="alfworld", max_steps=50, data=alfworld_data)


@pytest.fixture(scope="session")
def environment(parameters: AlfworldParameters) -> Alfworld:
    return Alfworld(parameters)
