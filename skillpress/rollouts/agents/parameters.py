"""The sections ``policy`` and ``reward`` of params.yaml: an agent's model, prompts, memory, parser and
reward.

Only this module looks up the registries that ``policy.parser``, ``policy.state_update`` and
``reward.shaping`` choose from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from skillpress.core.errors import UserError
from skillpress.core.interface import Rendering, StateUpdate
from skillpress.core.parsed_action import Parser
from skillpress.core.registry import PARSERS, SHAPINGS, STATE_UPDATES, lookup
from skillpress.core.sections import NonNegative, NonNegativeInt, Positive, PositiveInt, Section, registered
from skillpress.core.trajectory import Credit
from skillpress.rollouts.agents.learned_memory import Memory, MemoryText, MemoryWords
from skillpress.rollouts.agents.reward import OutcomeReward, WeightedMeasure
from skillpress.rollouts.agents.store.parameters import StoreParameters

if TYPE_CHECKING:
    from skillpress.skills.shaping import Shaping

SCRATCH = "scratch"
"""Value of ``policy.model`` for a model built from scratch."""
RENDERINGS_OWN = "rendering"
"""Value of ``policy.parser`` for the parser that the rendering itself names."""
ASKED_FOR = frozenset({"plain", "json", "xml", "planned"})
"""Parsers whose answers a prompt can ask for in place of tags."""
OWN_WORDS = frozenset({"concatenate", "summarize", "learned"})
"""The state updates whose prompts always contain text that the policy itself has written."""


class MemoryParameters(Section):
    """``policy.memory``: how much a learned state update keeps."""

    length: PositiveInt
    """Number of words of the memory in compact prompts; in others its maximum number of characters."""
    alphabet: NonNegativeInt
    """Number of different words of the memory in compact prompts."""

    def make(self, compact: bool) -> Memory:
        """The memory's format: words of its own alphabet in ``compact`` prompts, else text."""
        return MemoryWords(self.length, self.alphabet) if compact else MemoryText(self.length)


class PolicyParameters(Section):
    """Which model acts, how its prompts are made and how its answers are parsed."""

    model: Annotated[str, Field(min_length=1)]
    """``scratch``, ``smollm2-135m``, or the name or folder of a Hugging Face model."""
    rendering: str
    """Wording: compact, text, paper, or a file of your own (docs/agents.md)."""
    domain_tokens: list[Literal["markers", "actions", "entities"]]
    """Words that become single tokens of a pretrained model: markers, actions, entities."""
    parser: Annotated[str, registered(PARSERS, RENDERINGS_OWN)]
    """Reads answers: rendering (its own), plain, lenient, json ... (docs/agents.md)."""
    history: NonNegativeInt
    """Number of past actions in the state (measured in docs/experiments.md)."""
    state_update: Annotated[str, registered(STATE_UPDATES)]
    """How the state includes the past, such as window or concatenate (docs/agents.md)."""
    memory: MemoryParameters | None
    """Null, or {length, alphabet} for state_update learned (docs/agents.md)."""
    store: StoreParameters | None = None
    """Null, or {shown, length, embedding, writes} for state_update store (docs/agents.md)."""
    knowledge_words: NonNegativeInt
    """Maximum number of words of knowledge, such as a reflection, above a compact prompt."""
    context_tokens: PositiveInt
    """Maximum number of tokens of a prompt; earlier turns are cut to fit."""
    width: PositiveInt
    """Hidden size of a scratch model."""
    layers: PositiveInt
    """Transformer layers of a scratch model."""
    heads: PositiveInt
    """Attention heads of a scratch model."""
    dtype: Literal["float32", "bfloat16"]
    """Type of weights and sampling: float32 or bfloat16."""
    attention: Literal["auto", "sdpa", "blocked", "flash_attention_2"] = "auto"
    """How the learner computes attention: auto, sdpa, blocked ... (docs/gpus.md)."""

    quantised: Literal["nf4"] | None = None
    """Null, or nf4: round the weights to 4 bits, the form in which LoRA holds them (docs/lora.md)."""

    @model_validator(mode="after")
    def _some_attention_computes_in_half_types(self) -> PolicyParameters:
        if self.attention in ("blocked", "flash_attention_2") and self.dtype == "float32":
            raise ValueError(
                f"attention is {self.attention}, which supports only half types, but dtype is float32: use "
                f"bfloat16, or use attention auto or sdpa"
            )
        return self

    @model_validator(mode="after")
    def _heads_divide_width(self) -> PolicyParameters:
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of 2 x heads ({2 * self.heads})")
        return self

    @property
    def from_scratch(self) -> bool:
        """Whether the model is built from scratch."""
        return self.model == SCRATCH

    @property
    def compact(self) -> bool:
        """Whether prompts consist of the environment's few words, not of sentences."""
        return self.rendering == "compact"

    @property
    def turns_shown(self) -> int:
        """Maximum number of past turns in a rebuilt prompt."""
        return 0 if self.state_update == "environment" else self.history

    @property
    def shows_own_words(self) -> bool:
        """Whether prompts contain text that the policy itself has written, besides its actions."""
        return self.state_update in OWN_WORDS or (self.store is not None and self.store.holds_own_words)

    def libraries(self) -> dict[str, str]:
        """Maps libraries that only this attention, these weights and this state update use to their versions.

        Raises:
            UserError: one is not installed.
        """
        stored = {} if self.store is None else self.store.libraries()
        return self._attention_libraries() | self._quantising_libraries() | stored

    def _quantising_libraries(self) -> dict[str, str]:
        if self.quantised is None:
            return {}
        try:
            return {"bitsandbytes": version("bitsandbytes")}
        except PackageNotFoundError:
            raise UserError(
                f"policy.quantised: is {self.quantised}, but the package bitsandbytes is not installed here; "
                "pip install --no-deps bitsandbytes==0.50.2, or set policy.quantised to null"
            ) from None

    def _attention_libraries(self) -> dict[str, str]:
        if self.attention != "flash_attention_2":
            return {}
        try:
            return {"flash-attn": version("flash-attn")}
        except PackageNotFoundError:
            raise UserError(
                "policy.attention: is flash_attention_2, but the package flash-attn is not installed here; "
                "pip install flash-attn --no-build-isolation beside a GPU, or use auto or sdpa"
            ) from None

    def make_memory(self) -> Memory | None:
        """The memory of a learned state update; None for any other state update."""
        return None if self.memory is None else self.memory.make(self.compact)

    def make_state_update(self) -> StateUpdate:
        """Make the state update, which decides what the agent keeps of its past."""
        make = lookup(STATE_UPDATES, self.state_update, "policy.state_update")
        parts: list[object] = []
        if (memory := self.make_memory()) is not None:
            parts = [memory]
        elif self.store is not None:
            parts = [self.store, self.compact]
        made: StateUpdate = make(self.turns_shown, *parts)
        return made

    def parser_name(self, rendering: Rendering) -> str:
        """The parser of answers to a rendering's prompts: its own, unless the section names another."""
        return rendering.parser if self.parser == RENDERINGS_OWN else self.parser

    def make_parser(self, rendering: Rendering) -> Parser:
        """The parser named by :meth:`parser_name`."""
        return parser_called(self.parser_name(rendering))


def parser_called(name: str) -> Parser:
    """The parser that ``policy.parser`` or a rendering names; ``ParamsError`` if there is none."""
    found: Parser = lookup(PARSERS, name, "policy.parser")
    return found


class RewardParameters(Section):
    """The rewards for an agent's steps and for a trajectory's success."""

    success: Positive
    """R, the reward of a success."""
    invalid_penalty: NonNegative
    """Subtracted for each invalid action."""
    invalid_counts: Literal["any", "format"]
    """Which actions are invalid: any that is not carried out, or those of a wrong format."""
    invalid_credit: Credit
    """Which steps pay the penalty: every step of the trajectory, or only the invalid one."""
    measures: dict[str, WeightedMeasure]
    """Rewards for facts that the environment states: {name: {weight: 0.1, credit: step}}."""
    shaping: Annotated[str, registered(SHAPINGS)]
    """What a success loses: none, constant, round_length, rounds, segcost or bits. Of these
    ``rounds`` also charges steps without a skill."""
    shaping_credit: Literal["trajectory", "step"]
    """Which steps pay it: every step of the trajectory the sum, or each step its own part."""
    shaping_weight: NonNegative
    """Lambda, the weight of the shaping."""
    centred: bool = False
    """Whether the mean penalty of a group's successes is deducted from each success's penalty
    (docs/methods.md)."""

    @model_validator(mode="after")
    def _whole_penalties_are_centred(self) -> RewardParameters:
        if self.centred and self.shaping_credit == "step":
            raise ValueError(
                "centred is true, must be false with shaping_credit step, because a group's mean penalty "
                "belongs to no step"
            )
        return self

    def make(self) -> OutcomeReward:
        """Make the agent's reward for its own steps."""
        return OutcomeReward(**{field.name: getattr(self, field.name) for field in fields(OutcomeReward)})

    def make_shaping(self, max_steps: int) -> Shaping:
        """Make the shaping of successes, with λ = ``shaping_weight`` and T = ``max_steps``."""
        make: Callable[[float, int], Shaping] = lookup(SHAPINGS, self.shaping, "reward.shaping")
        return make(self.shaping_weight, max_steps)
