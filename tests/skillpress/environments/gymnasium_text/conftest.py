"""Sections of small games."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from tests.support.environments.small_games import DOORS, WORDLE

MakeSection = Callable[..., GymnasiumTextParameters]


@pytest.fixture(scope="session")
def doors() -> MakeSection:
    """``doors(won={...}, ...)``: the section of the doors game with these keys changed."""
    return lambda **changed: GymnasiumTextParameters.model_validate(DOORS | changed)


@pytest.fixture(scope="session")
def wordle() -> MakeSection:
    """``wordle(...)``: the section of Wordle with eight words, with these keys changed."""
    return lambda **changed: GymnasiumTextParameters.model_validate(WORDLE | changed)
