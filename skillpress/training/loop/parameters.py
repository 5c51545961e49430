"""The ``training`` section of params.yaml, with its parts ``lora``, ``replay`` and ``probe``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

from pydantic import Field

from skillpress.core.errors import UserError
from skillpress.core.lab import lab_file
from skillpress.core.sections import (
    Decay,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Section,
    registered,
)

DEEPSPEED = lab_file("infra/deepspeed")
"""The DeepSpeed configurations that ``training.deepspeed`` names."""


class LoraParameters(Section):
    """``training.lora``: the low-rank adapter that is trained in place of the whole policy."""

    rank: PositiveInt
    alpha: PositiveInt

    def libraries(self) -> dict[str, str]:
        """Name to version of the libraries that only experiments with LoRA use.

        Raises:
            UserError: ``peft`` is not installed.
        """
        try:
            return {"peft": version("peft")}
        except PackageNotFoundError:
            raise UserError(
                "training.lora: is set, but the package peft is not installed here; "
                "pip install --constraint constraints.txt -e '.[lora]', or set training.lora to null"
            ) from None


class ReplayParameters(Section):
    """``training.replay``: which groups of earlier steps training learns from again."""

    groups: PositiveInt
    staleness: PositiveInt


class ProbeParameters(Section):
    """``training.probe``: how often the policy plays fixed tasks while it learns, and how many."""

    every: PositiveInt
    tasks: PositiveInt


class TrainingParameters(Section):
    """The settings of reinforcement learning that do not depend on the algorithm."""

    steps: NonNegativeInt
    tasks_per_step: PositiveInt
    rollouts_per_task: PositiveInt
    learning_rate: Positive
    weight_decay: NonNegative
    betas: Annotated[list[Decay], Field(min_length=2, max_length=2)]
    warmup_steps: NonNegativeInt
    gradient_clipping: NonNegative
    minibatches: PositiveInt
    minibatch_size: NonNegativeInt
    lag: NonNegativeInt
    replay: ReplayParameters | None
    deepspeed: Annotated[str, registered(sorted(p.stem for p in DEEPSPEED.glob("*.json")))]
    microbatch_tokens: PositiveInt
    mismatch_limit: Positive
    gradient_checkpointing: bool
    lora: LoraParameters | None
    checkpoint_every: PositiveInt
    keep: Literal["last", "best"]
    probe: ProbeParameters | None
    timeout: Positive = 7200.0
    """Seconds that a process waits for the others before it counts them as lost."""
