"""Every parameter of an experiment, one section of params.yaml to one class.

A params file is read whole and checked before any work is done: unknown keys, wrong types, values
out of range and combinations that cannot work are refused with the key's path, the value and what
is allowed. What each key means stands beside it in params.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from skillpress.environments import ENVIRONMENTS, EnvironmentParameters, environment_parameters

PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Mass = Annotated[float, Field(gt=0, le=1)]


class ParamsError(ValueError):
    """A params file is wrong; the message has one line per mistake."""


class Section(BaseModel):
    """A section: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TaskParameters(Section):
    train: PositiveInt
    validation: PositiveInt
    test: PositiveInt


class PolicyParameters(Section):
    model: Annotated[str, Field(min_length=1)]
    rendering: str
    history: NonNegativeInt
    state_update: Literal["window", "concatenate", "environment"]
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


class ImitationParameters(Section):
    demonstrations: NonNegativeInt
    detour_rate: Fraction
    batch_size: PositiveInt
    learning_rate: Positive
    epochs: PositiveInt


class SamplingParameters(Section):
    engine: str
    temperature: Positive
    max_new_tokens: PositiveInt
    slots: PositiveInt


class RolloutParameters(Section):
    tasks: PositiveInt
    per_task: PositiveInt


class SkillParameters(Section):
    max_phrase_length: Annotated[int, Field(ge=1, le=16)]
    buffer: NonNegativeInt
    search: Literal["greedy", "refined", "exact", "frequency", "random", "singletons"]
    closure: Literal["none", "prefixes", "deletions"]


class RewardParameters(Section):
    success: Positive
    invalid_penalty: NonNegative
    shaping: Literal["none", "round_length", "segcost"]
    efficiency: NonNegative


class TrainingParameters(Section):
    steps: NonNegativeInt
    tasks_per_step: PositiveInt
    rollouts_per_task: Annotated[int, Field(ge=2)]
    learning_rate: Positive
    clip: Annotated[float, Field(gt=0, lt=1)]
    kl_coefficient: NonNegative
    minibatches: PositiveInt
    vote: Literal["per_trajectory", "per_step"]
    scale: Literal["std", "none"]
    aggregation: Literal["token_mean", "sequence_mean"]
    deepspeed: str
    processes: PositiveInt
    microbatch_tokens: PositiveInt
    checkpoint_every: PositiveInt
    keep: Literal["last", "peak"]

    @model_validator(mode="after")
    def _groups_are_shared_evenly(self) -> TrainingParameters:
        if self.tasks_per_step % self.processes:
            raise ValueError(
                f"tasks_per_step {self.tasks_per_step} must be a multiple of processes ({self.processes})"
            )
        return self


class EvaluationParameters(Section):
    runs: PositiveInt
    votes: PositiveInt
    temperature: NonNegative
    top_p: Mass
    top_k: NonNegativeInt

    @field_validator("votes")
    @classmethod
    def _no_ties(cls, votes: int) -> int:
        if votes % 2 == 0:
            raise ValueError("must be odd, so that a majority vote cannot tie")
        return votes


class Params(Section):
    """A whole experiment."""

    seed: NonNegativeInt
    environment: SerializeAsAny[EnvironmentParameters]
    tasks: TaskParameters
    policy: PolicyParameters
    imitation: ImitationParameters
    sampling: SamplingParameters
    rollouts: RolloutParameters
    skills: SkillParameters
    reward: RewardParameters
    training: TrainingParameters
    evaluation: EvaluationParameters

    @model_validator(mode="after")
    def _training_fits_a_dictionary_every_step(self) -> Params:
        if self.skills.search == "exact" and self.training.steps:
            raise ValueError(
                "skills.search exact may take a minute per dictionary, and what it finds by then depends on "
                "the machine: set training.steps to 0 with it, or train with another search"
            )
        return self

    @field_validator("environment", mode="before")
    @classmethod
    def _environment_by_name(cls, value: Any) -> EnvironmentParameters:
        if isinstance(value, EnvironmentParameters):
            return value
        name = value.get("name") if isinstance(value, Mapping) else None
        if name not in ENVIRONMENTS:
            raise ValueError(f"name is {name!r}; allowed: {', '.join(ENVIRONMENTS)}")
        return environment_parameters(str(name)).model_validate(value)


def load_params(path: str | Path = "params.yaml", *overlays: str | Path) -> Params:
    """The experiment of a params file with overlays laid over it in order.

    Raises:
        ParamsError: a file is missing or not YAML, or a key, type or value is wrong.
    """
    merged = read_yaml(path)
    for overlay in overlays:
        merged = merge(merged, read_yaml(overlay))
    return check_params(merged, source=" + ".join(str(p) for p in (path, *overlays)))


def check_params(values: Mapping[str, Any], source: str) -> Params:
    """Validate a mapping; ``source`` names it in the error."""
    try:
        return Params.model_validate(values)
    except ValidationError as error:
        lines = [_describe(dict(detail)) for detail in error.errors(include_url=False)]
        raise ParamsError(f"{source}:\n" + "\n".join(f"  {line}" for line in lines)) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        ParamsError: it is missing, not YAML, or holds something else.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ParamsError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ParamsError(f"{path}: must hold sections of parameters, holds {type(values).__name__}")
    return values


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the overlay's keys laid over it, section by section.

    A section that gives another ``name`` than the one below replaces it whole: no key of Countdown's
    means anything to another environment.
    """
    merged = dict(base)
    for key, value in overlay.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and not _renames(below, value):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _renames(below: Mapping[str, Any], section: Mapping[str, Any]) -> bool:
    return "name" in section and section["name"] != below.get("name")


def _describe(detail: dict[str, Any]) -> str:
    path = ".".join(str(part) for part in detail["loc"]) or "(file)"
    if detail["type"] == "extra_forbidden":
        return f"{path}: unknown key; remove it or correct its spelling"
    if detail["type"] == "missing":
        return f"{path}: missing; params.yaml shows its meaning and default"
    value = detail["input"]
    shown = "" if isinstance(value, Mapping) else f" is {value!r};"
    return f"{path}:{shown} {detail['msg'].removeprefix('Value error, ')}"
