"""Countdown-Stepwise: make a target from all of a few numbers, one operation at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from skillpress.core.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.actions import MOST_NUMBERS
from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.environments.section import EnvironmentSection, Oracle, Projection, SplitSizes

LARGEST_SOURCE = 100
"""The largest number that a puzzle may start with."""


class CountdownParameters(EnvironmentSection):
    """Which puzzles there are, and how long an episode may take."""

    answer_forms: ClassVar[bool] = True
    own_tests: ClassVar[bool] = True

    min_numbers: Annotated[int, Field(ge=2, le=MOST_NUMBERS)]
    """The fewest numbers in a puzzle."""
    max_numbers: Annotated[int, Field(ge=2, le=MOST_NUMBERS)]
    """The most numbers in a puzzle."""
    min_target: Annotated[int, Field(ge=1)]
    """The smallest target."""
    max_target: Annotated[int, Field(ge=LARGEST_SOURCE)]
    """The largest target, and the largest number that an action may make."""
    min_solutions: Annotated[int, Field(ge=1)] = 1
    """Puzzles with fewer distinct solutions are filtered out."""
    unseen_numbers: Annotated[int, Field(ge=0, le=MOST_NUMBERS)] = 0
    """Number of numbers in a puzzle of the split ``unseen``, for which prompts and actions have room; 0 for
    no such puzzles."""

    @property
    def largest_pool(self) -> int:
        """The largest number of numbers in a puzzle of any split."""
        return max(self.max_numbers, self.unseen_numbers)

    @property
    def why_nothing_unseen(self) -> str | None:
        """None if the section sets ``unseen_numbers``."""
        return None if self.unseen_numbers else "environment.unseen_numbers is 0; make it 5"

    @model_validator(mode="after")
    def _ranges_hold_something(self) -> CountdownParameters:
        if self.min_numbers > self.max_numbers:
            raise ValueError(f"min_numbers {self.min_numbers} must not exceed max_numbers {self.max_numbers}")
        if self.min_target > self.max_target:
            raise ValueError(f"min_target {self.min_target} must not exceed max_target {self.max_target}")
        if 0 < self.unseen_numbers <= self.max_numbers:
            raise ValueError(
                f"unseen_numbers {self.unseen_numbers} must be 0 or exceed max_numbers {self.max_numbers}"
            )
        if self.max_steps < self.largest_pool - 1:
            largest = "unseen_numbers" if self.unseen_numbers else "max_numbers"
            raise ValueError(
                f"max_steps {self.max_steps} must be at least {largest} - 1 "
                f"({self.largest_pool - 1}), the operations that a puzzle takes"
            )
        return self

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.countdown.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.countdown.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.countdown.environment import Countdown

        return Countdown(self)

    def make_projection(self) -> Projection:
        return CountdownProjection()

    def explorer_actions(self, info: Info) -> Sequence[str]:
        from skillpress.environments.countdown.environment import explorer_actions

        return explorer_actions(info)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.countdown import prompts

        return {
            "compact": lambda history: prompts.CompactRendering(self.largest_pool, history),
            "text": lambda history: prompts.TextRendering(history, prompts.OWN),
            "brief": lambda history: prompts.BriefRendering(history, prompts.BRIEF, parser="plain"),
            "paper": lambda history: prompts.TextRendering(history, prompts.PAPER % self.max_steps),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.countdown.prompts import vocabulary

        return vocabulary(self, history)

    def domain_words(self) -> Mapping[str, Sequence[str]]:
        from skillpress.environments.countdown.prompts import domain_words

        return domain_words(self)

    def make_oracle(self) -> Oracle:
        from skillpress.environments.countdown.oracle import CountdownOracle

        return CountdownOracle(self)
