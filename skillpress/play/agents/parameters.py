"""The sections ``policy`` and ``reward`` of params.yaml: what an agent reads, keeps, says and is paid for.

The registries that ``policy.parser``, ``policy.state_update`` and ``reward.shaping`` choose from are looked
up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from skillpress.core.interface import Rendering, StateUpdate
from skillpress.core.parsed_action import Parser
from skillpress.core.registry import PARSERS, SHAPINGS, STATE_UPDATES, lookup
from skillpress.core.sections import NonNegative, NonNegativeInt, Positive, PositiveInt, Section, registered
from skillpress.core.trajectory import Credit
from skillpress.play.agents.learned_memory import Memory, MemoryText, MemoryWords
from skillpress.play.agents.reward import OutcomeReward, WeightedMeasure

if TYPE_CHECKING:
    from skillpress.skills.shaping import Shaping

SCRATCH = "scratch"
"""``policy.model`` of a model made from nothing."""
RENDERINGS_OWN = "rendering"
"""``policy.parser`` of the parser that the rendering itself names."""
ASKED_FOR = frozenset({"json", "xml", "planned"})
"""Parsers whose answers a prompt can ask for in place of tags."""
OWN_WORDS = frozenset({"concatenate", "summarize", "learned"})
"""The state updates whose prompts hold what the policy itself has written."""


class MemoryParameters(Section):
    """``policy.memory``: how much a learned state update keeps."""

    length: PositiveInt
    alphabet: NonNegativeInt

    def make(self, compact: bool) -> Memory:
        """How the memory is written: in words of an alphabet of its own, or as text.

        Args:
            compact: whether the rendering is the compact one, which has no words but its own.
        """
        return MemoryWords(self.length, self.alphabet) if compact else MemoryText(self.length)


class PolicyParameters(Section):
    """Which model acts, and how its prompts are made and its answers read."""

    model: Annotated[str, Field(min_length=1)]
    rendering: str
    domain_tokens: list[Literal["markers", "actions", "entities"]]
    parser: Annotated[str, registered((RENDERINGS_OWN, *PARSERS))]
    history: NonNegativeInt
    state_update: Annotated[str, registered(STATE_UPDATES)]
    memory: MemoryParameters | None
    knowledge_words: NonNegativeInt
    context_tokens: PositiveInt
    width: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    dtype: Literal["float32", "bfloat16"]

    @model_validator(mode="after")
    def _heads_divide_width(self) -> PolicyParameters:
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of 2 x heads ({2 * self.heads})")
        return self

    @property
    def from_scratch(self) -> bool:
        """Whether the model is made from nothing."""
        return self.model == SCRATCH

    @property
    def compact(self) -> bool:
        """Whether prompts are of the environment's few words, and not of sentences."""
        return self.rendering == "compact"

    @property
    def turns_shown(self) -> int:
        """How many past turns a prompt shows at most that is made anew."""
        return 0 if self.state_update == "environment" else self.history

    def make_memory(self) -> Memory | None:
        """How a learned state update is written; None with any other."""
        return None if self.memory is None else self.memory.make(self.compact)

    def make_state_update(self) -> StateUpdate:
        """What the agent keeps of its past."""
        make = lookup(STATE_UPDATES, self.state_update, "policy.state_update")
        memory = self.make_memory()
        made: StateUpdate = make(self.turns_shown, *([] if memory is None else [memory]))
        return made

    def parser_name(self, rendering: Rendering) -> str:
        """What reads the answers to a rendering's prompts: its own parser, or the one that is asked for."""
        return rendering.parser if self.parser == RENDERINGS_OWN else self.parser

    def make_parser(self, rendering: Rendering) -> Parser:
        """The parser of :meth:`parser_name`."""
        return parser_called(self.parser_name(rendering))


def parser_called(name: str) -> Parser:
    """The parser that ``policy.parser``, or a rendering, calls so.

    Raises:
        ParamsError: no parser has this name.
    """
    found: Parser = lookup(PARSERS, name, "policy.parser")
    return found


class RewardParameters(Section):
    """What an agent's steps and a trajectory's success are worth."""

    success: Positive
    invalid_penalty: NonNegative
    invalid_counts: Literal["any", "format"]
    invalid_credit: Credit
    measures: dict[str, WeightedMeasure]
    shaping: Annotated[str, registered(SHAPINGS)]
    shaping_credit: Credit
    efficiency: NonNegative

    def make(self) -> OutcomeReward:
        """How an agent judges its own steps."""
        return OutcomeReward(
            success=self.success,
            invalid_penalty=self.invalid_penalty,
            invalid_counts=self.invalid_counts,
            invalid_credit=self.invalid_credit,
            measures=self.measures,
        )

    def make_shaping(self, max_steps: int) -> Shaping:
        """What successes cost, with λ = ``efficiency`` and T = ``max_steps``."""
        make: Callable[[float, int], Shaping] = lookup(SHAPINGS, self.shaping, "reward.shaping")
        return make(self.efficiency, max_steps)
