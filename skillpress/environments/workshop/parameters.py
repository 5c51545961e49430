"""The workshop: a piece of training is made by a routine that transfers, or by a shortcut that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import perm
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from skillpress.core.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.sections import Fraction, PositiveInt, Section
from skillpress.core.trajectory import Task
from skillpress.environments.section import EnvironmentSection, Oracle, Projection, SplitSizes
from skillpress.environments.workshop.actions import ATTRIBUTES, CONTRAPTIONS, SUBGOALS, SYNONYMS, Machine
from skillpress.environments.workshop.skills import PROJECTION

MOST_PIECES = len(ATTRIBUTES[0]) * len(ATTRIBUTES[1]) * len(ATTRIBUTES[2])
"""Number of pieces that the attribute words can name."""


class ShortcutParameters(Section):
    """``environment.shortcut``: the other way to win a training piece, besides its routine."""

    length: PositiveInt
    """l, the number of actions."""
    skills: Machine
    """Which skills the actions have: ``own``, one for each contraption; ``same``, those of the routine;
    ``one``, Tinker for all."""
    order: Literal["fixed", "free"] = "fixed"
    """Whether the actions must be done in one order, or each once in any order."""
    share: Fraction = 0.5
    """Among demonstrations of tasks that have a shortcut, the share that uses it."""
    of: Literal["piece", "mark"] = "piece"
    """What a shortcut belongs to: a piece, or all pieces with a mark."""
    new_pieces: Fraction = 0.0
    """Share of the new pieces on which the shortcut of their mark wins; 0 with ``of: piece``."""

    @model_validator(mode="after")
    def _can_be_made(self) -> ShortcutParameters:
        if self.skills == "own" and self.length > len(CONTRAPTIONS):
            raise ValueError(
                f"length {self.length} must not exceed {len(CONTRAPTIONS)} with skills own: "
                "a shortcut uses a contraption once"
            )
        if self.new_pieces and self.of == "piece":
            raise ValueError(
                f"new_pieces is {self.new_pieces:g}, must be 0 with of piece: a new piece has no shortcut"
            )
        if self.skills == "same" and self.order == "free":
            raise ValueError(
                "order is free, must be fixed with skills same, which follow the routine's verbs"
            )
        return self


class WorkshopParameters(EnvironmentSection):
    """The orders and pieces of training, and their shortcuts."""

    answer_forms: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("by_routine", "by_shortcut")
    """How an episode was won: at its last step the way that was used has 1 and the other 0; both are 0 after
    a loss."""

    subgoals: Annotated[int, Field(ge=1, le=len(SUBGOALS) - 1)] = 2
    """g, the number of sub-goals of an order. The stratum ``unseen/longer`` has one more."""
    orders: PositiveInt
    """Number of different orders that training has. The tasks of an order share a routine."""
    pieces: Annotated[int, Field(ge=max(map(len, ATTRIBUTES)), le=MOST_PIECES)]
    """Number of pieces that training has. The training tasks of a piece share a shortcut."""
    shortcut: ShortcutParameters
    """The other way to win a training piece, besides its routine."""
    synonyms: Annotated[int, Field(ge=1, le=len(SYNONYMS["go"]))] = 1
    """Number of synonyms, such as ``go``, ``walk`` and ``run``, among which the oracle draws each verb. The
    environment understands all of them."""

    @property
    def longest_routine(self) -> int:
        """Number of steps of the routine of g + 1 sub-goals: three for each, and the delivery."""
        return 3 * (self.subgoals + 1) + 1

    @property
    def orders_there_are(self) -> int:
        """Number of different orders of ``subgoals`` sub-goals."""
        return perm(len(SUBGOALS), self.subgoals)

    @property
    def why_nothing_unseen(self) -> str | None:
        """None if training lacks an order."""
        if self.orders < self.orders_there_are:
            return None
        remedy = "make subgoals 2 or more" if self.subgoals == 1 else f"make it at most {self.orders - 1}"
        return f"environment.orders {self.orders} includes all orders of subgoals {self.subgoals}; {remedy}"

    @model_validator(mode="after")
    def _can_be_made(self) -> WorkshopParameters:
        fewest, most = -(-len(SUBGOALS) // self.subgoals), self.orders_there_are
        if not fewest <= self.orders <= most:
            raise ValueError(
                f"orders {self.orders} must be from {fewest} to {most} with subgoals {self.subgoals}: every "
                "sub-goal occurs in training, and no two orders are the same"
            )
        if self.max_steps < self.longest_routine:
            raise ValueError(
                f"max_steps {self.max_steps} must be at least {self.longest_routine}, the steps of a routine "
                f"of subgoals + 1 ({self.subgoals + 1})"
            )
        if self.max_steps < self.shortcut.length:
            raise ValueError(
                f"max_steps {self.max_steps} must be at least shortcut.length ({self.shortcut.length})"
            )
        return self

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.workshop.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.workshop.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.workshop.environment import Workshop

        return Workshop(self)

    def make_projection(self) -> Projection:
        return PROJECTION

    def explorer_actions(self, info: Info) -> Sequence[str]:
        from skillpress.environments.workshop.environment import explorer_actions

        return explorer_actions(info)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.workshop.prompts import OWN, PAPER, CompactRendering, TextRendering

        return {
            "compact": lambda history: CompactRendering(self, history),
            "text": lambda history: TextRendering(history, OWN),
            "paper": lambda history: TextRendering(history, PAPER % self.max_steps),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.workshop.prompts import vocabulary

        return vocabulary(self, history)

    def domain_words(self) -> Mapping[str, Sequence[str]]:
        from skillpress.environments.workshop.prompts import domain_words

        return domain_words(self)

    def make_oracle(self) -> Oracle:
        from skillpress.environments.workshop.oracle import WorkshopOracle

        return WorkshopOracle(self)
