"""The ``environment`` section of params.yaml for Countdown-Stepwise."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from skillpress.environments.bundle import EnvironmentParameters
from skillpress.environments.countdown.actions import MOST_NUMBERS

LARGEST_SOURCE = 100
"""The largest number a puzzle may start with."""


class CountdownParameters(EnvironmentParameters):
    """Which puzzles there are, and how long an episode may take."""

    min_numbers: Annotated[int, Field(ge=2, le=MOST_NUMBERS)]
    max_numbers: Annotated[int, Field(ge=2, le=MOST_NUMBERS)]
    min_target: Annotated[int, Field(ge=1)]
    max_target: Annotated[int, Field(ge=LARGEST_SOURCE)]
    """Also the largest number that an action may make."""
    min_solutions: Annotated[int, Field(ge=1)] = 1
    """Puzzles with fewer distinct solutions are filtered out."""

    @model_validator(mode="after")
    def _ranges_hold_something(self) -> CountdownParameters:
        if self.min_numbers > self.max_numbers:
            raise ValueError(f"min_numbers {self.min_numbers} must not exceed max_numbers {self.max_numbers}")
        if self.min_target > self.max_target:
            raise ValueError(f"min_target {self.min_target} must not exceed max_target {self.max_target}")
        if self.max_steps < self.max_numbers - 1:
            raise ValueError(
                f"max_steps {self.max_steps} must be at least max_numbers - 1 "
                f"({self.max_numbers - 1}), the operations that a puzzle takes"
            )
        return self
