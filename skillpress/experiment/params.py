"""Every parameter of an experiment, one section of params.yaml to one class.

A params file is read whole and checked before any work starts. Unknown keys, wrong types, values out of range
and combinations that cannot work are refused with the key's path, the value and what is allowed. A field's
docstring explains its key, and params.yaml's comments are made from it. The class of a section is next to the
code that the section describes; rules between sections are in ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, ValidationError, field_validator, model_validator

from skillpress.core.engine import Sampling
from skillpress.core.errors import ParamsError
from skillpress.core.moved import with_present_keys
from skillpress.core.names import CodeNotRunError
from skillpress.core.registry import ALGORITHMS, ENGINES, ENVIRONMENTS, EXPERIENCES
from skillpress.core.sections import ByName, Mass, NonNegative, NonNegativeInt, PositiveInt, Section, Seed
from skillpress.environments.section import EnvironmentSection
from skillpress.environments.task_parameters import TaskParameters
from skillpress.experiment.layers import Layer, file_layer
from skillpress.experiment.params_mistakes import mistakes, unwritable
from skillpress.experiment.rules import check_rules
from skillpress.models.engines.parameters import EngineParameters, SamplingParameters
from skillpress.rollouts.agents.parameters import PolicyParameters, RewardParameters
from skillpress.rollouts.remote.parameters import WorkersParameters
from skillpress.skills.parameters import SkillParameters
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.experience.parameters import ExperienceParameters
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.loop.parameters import TrainingParameters


class RolloutParameters(Section):
    """How many episodes the start policy plays before training."""

    tasks: PositiveInt | Literal["all"]
    """Training tasks that the stage collect_rollouts plays, or all."""
    per_task: PositiveInt
    """Episodes per task in collect_rollouts."""

    def played(self, tasks: int) -> int:
        """How many of so many training tasks are played."""
        return tasks if self.tasks == "all" else min(self.tasks, tasks)


class EvaluationParameters(Section):
    """How the test tasks are played, and how often."""

    runs: PositiveInt
    """Independent runs; Pass@1 is their mean and deviation."""
    votes: PositiveInt
    """k of SC@k, the rollouts per task and run; an odd number."""
    temperature: NonNegative
    """Temperature while evaluating."""
    top_p: Mass
    """Probability mass that sampling keeps while evaluating."""
    top_k: NonNegativeInt
    """Number of tokens that sampling keeps while evaluating; 0 keeps all."""
    accept_unread: bool = False
    """Whether the evaluation continues if no answer of the trained policy could be read. Otherwise the stage
    ends with an error that says why: a success of 0% would say nothing about the policy."""

    @field_validator("votes")
    @classmethod
    def _no_ties(cls, votes: int) -> int:
        if votes % 2 == 0:
            raise ValueError("must be odd, so that a majority vote cannot tie")
        return votes

    def make(self, max_new_tokens: int) -> Sampling:
        """How tokens are drawn while evaluating."""
        return Sampling(self.temperature, self.top_p, self.top_k, max_new_tokens)


class Params(Section):
    """All parameters of an experiment."""

    seed: Seed
    """Every random choice of the experiment derives from it."""
    processes: PositiveInt
    """Processes that share imitation, episodes and training; results depend on it."""
    environment: Annotated[SerializeAsAny[EnvironmentSection], ByName(ENVIRONMENTS, "environment.name")]
    """What is played; each has its keys."""
    tasks: TaskParameters
    """How many tasks each split has, and which of them train."""
    policy: PolicyParameters
    """The model that acts, its prompts, and how its answers are read."""
    imitation: ImitationParameters
    """What is imitated first."""
    engine: Annotated[SerializeAsAny[EngineParameters], ByName(ENGINES, "engine.name")]
    """The part that samples; each name has its own keys."""
    sampling: SamplingParameters
    """How training samples tokens, and how many responses at once."""
    workers: WorkersParameters = Field(default_factory=WorkersParameters)
    """Other machines that run the environments (docs/scaling.md)."""
    rollouts: RolloutParameters
    """How many episodes the start policy plays before training."""
    skills: SkillParameters
    """The dictionary (docs/dictionary.md) and the skill library."""
    reward: RewardParameters
    """Rewards and costs of steps and successes (docs/methods.md)."""
    algorithm: Annotated[SerializeAsAny[Algorithm], ByName(ALGORITHMS, "algorithm.name")]
    """The method of training; each name has its own keys."""
    experience: Annotated[SerializeAsAny[ExperienceParameters], ByName(EXPERIENCES, "experience.name")]
    """Further attempts to learn from; each name has its own keys."""
    training: TrainingParameters
    """What all algorithms share."""
    evaluation: EvaluationParameters
    """How the test tasks are played, and how often."""

    @model_validator(mode="after")
    def _sections_go_together(self) -> Params:
        if self.environment.model_config.get("extra") == "allow":
            return self  # a command that only looks cannot ask an environment whose code it does not import
        with suppress(CodeNotRunError):  # nor the other parts of the experiment
            check_rules(self)
        return self


def load_params(path: str | Path = "params.yaml", *overlays: str | Path) -> Params:
    """The experiment of a params file, with overlays applied in order.

    Raises:
        ParamsError: a file is missing or not YAML, or a key, type or value is wrong.
    """
    layers = [file_layer(one) for one in (path, *overlays)]
    return check_params(merged(layers), source=sources(layers), layers=layers)


def check_params(values: Mapping[str, Any], source: str, layers: Sequence[Layer] = ()) -> Params:
    """Validate a mapping; ``source`` names it in the error.

    Args:
        layers: what the mapping was merged from; a mistake's line then names its file and line.

    Raises:
        ParamsError: a key, a type or a value is wrong; the message has a line for each.
    """
    values = with_present_keys(values, source, note=True)
    try:
        params = Params.model_validate(values)
        lines = list(unwritable(values, layers))
    except ValidationError as error:
        lines = mistakes(Params, values, error, layers)
    if lines:
        raise ParamsError(f"{source}:\n" + "\n".join(f"  {line}" for line in lines))
    return params


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        ParamsError: it is missing, not YAML, or holds something else.
    """
    return dict(file_layer(path).values)


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """The layers' values, each laid over those before it."""
    values: dict[str, Any] = {}
    for layer in layers:
        values = merge(values, layer.values)
    return values


def sources(layers: Sequence[Layer]) -> str:
    """The layers as an error names them together."""
    return " + ".join(layer.name for layer in layers)


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the overlay's keys applied, section by section.

    If the overlay's section has another ``name`` than the base's, it replaces that section whole: Countdown's
    keys mean nothing to another environment, nor GRPO's to another algorithm.
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
