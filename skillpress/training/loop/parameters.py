"""The ``training`` section of params.yaml, with its parts ``replay`` and ``probe``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

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
from skillpress.training.lora_parameters import LoraParameters

DEEPSPEED = lab_file("infra/deepspeed")
"""The DeepSpeed configurations that ``training.deepspeed`` names."""


class ReplayParameters(Section):
    """``training.replay``: which groups of earlier steps training learns from again."""

    groups: PositiveInt
    """Number of earlier groups that each step learns from again."""
    staleness: PositiveInt
    """The most steps by which the weights that played a group may be behind the learner's."""


class ProbeParameters(Section):
    """``training.probe``: how often the policy plays fixed tasks while it learns, and how many."""

    every: PositiveInt
    """Number of training steps between probes."""
    tasks: PositiveInt
    """Number of tasks of each split that a probe plays."""


class TrainingParameters(Section):
    """The settings of reinforcement learning that do not depend on the algorithm."""

    steps: NonNegativeInt
    """Training steps; 0 evaluates the imitation start."""
    tasks_per_step: PositiveInt
    """Groups per step."""
    rollouts_per_task: PositiveInt
    """Episodes per group."""
    learning_rate: Positive
    """Learning rate of AdamW, constant after the warm-up."""
    weight_decay: NonNegative
    """AdamW's weight decay, for every parameter."""
    betas: Annotated[list[Decay], Field(min_length=2, max_length=2)]
    """AdamW's decay of the first and the second moment."""
    warmup_steps: NonNegativeInt
    """Steps in which the learning rate rises linearly to its full value."""
    gradient_clipping: NonNegative
    """The largest norm of the gradient; 0 turns clipping off."""
    minibatches: PositiveInt
    """Optimizer updates per step if minibatch_size is 0."""
    minibatch_size: NonNegativeInt
    """The most steps of episodes in an update, over all processes; 0 means no limit."""
    lag: NonNegativeInt
    """Number of steps that episodes may be played ahead of the updates."""
    replay: ReplayParameters | None
    """Null, or {groups, staleness}: learn again from groups of the last steps."""
    deepspeed: Annotated[str, registered(sorted(p.stem for p in DEEPSPEED.glob("*.json")))]
    """Name of a configuration file in infra/deepspeed."""
    microbatch_tokens: PositiveInt
    """The most tokens of one forward pass (for memory), also in imitation."""
    mismatch_limit: Positive
    """The most nats per token by which engine and learner may differ (bfloat16: 0.1)."""
    gradient_checkpointing: bool
    """Computes activations again: less memory, more time; also in imitation."""
    compile: Literal["auto", "always", "never"] = "auto"
    """Whether torch compiles the learner's layers; ``auto`` does on GPUs, and says why if it cannot."""
    lora: LoraParameters | None
    """Null, or {rank, alpha}: train low-rank changes of the weights (docs/lora.md)."""
    checkpoint_every: PositiveInt
    """Steps between checkpoints."""
    keep: Literal["last", "best"]
    """Weights that a run leaves: last, or best on the validation tasks."""
    probe: ProbeParameters | None = None
    """Null, or {every, tasks}: probe the policy every few steps (docs/evaluation.md)."""
    side_calls: bool = True
    """Learns the calls that a program makes beside its work, such as titles. False leaves them out: they stay
    steps of their episode, whose reward they share."""
    timeout: Positive = 7200.0
    """Seconds that a process waits for the others before it counts them as lost."""
