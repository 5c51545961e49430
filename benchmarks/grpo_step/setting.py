"""The common inputs of both sides: the device, the policy, the prompts, the rewards."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.device import finish
from benchmarks.shapes import random_policy
from skillpress.core.interface import ScratchVocabulary
from skillpress.models.policy import Policy
from skillpress.models.policy.pretrained import SMOLLM2, load_pretrained
from skillpress.models.policy.scratch import build_scratch_policy

RESPONSE, GROUP = 32, 8
"""Tokens per completion, completions per prompt."""
LEARNING_RATE = 1e-5


@dataclass(frozen=True)
class Place:
    """The device on which both sides compute."""

    device: torch.device
    dtype: str

    @property
    def configuration(self) -> str:
        """The learner's configuration in ``infra/deepspeed``."""
        return "zero1_bf16" if self.dtype == "bfloat16" else "zero1_fp32"

    def now(self) -> float:
        """Processor seconds; with a GPU, wall-clock seconds after it has finished its work."""
        if self.device.type == "cpu":
            return time.process_time()
        finish(self.device)
        return time.perf_counter()


@dataclass(frozen=True)
class Setting:
    """A model and its training data."""

    shape: tuple[int, int, int] | None
    """Width, layers, heads of a scratch policy; None is SmolLM2-135M."""
    numbers: int
    """Numbers below 1000 in a prompt; one word each for a scratch policy, four tokens for SmolLM2."""
    groups: int
    random: str = ""
    """The name in ``benchmarks.shapes`` of a model with random weights, in place of the two above."""

    @property
    def completions(self) -> int:
        """Completions per step."""
        return self.groups * GROUP


SETTINGS = {
    "default": Setting((64, 2, 2), 200, 8),
    "3m": Setting((192, 6, 6), 200, 8),
    "smollm2": Setting(None, 50, 1),
    "smollm2-shape": Setting(None, 200, 1, random="smollm2-shape"),
}
"""``default`` is the policy of params.yaml."""


@dataclass(frozen=True)
class Timed:
    """One side's steps."""

    step: list[float]
    """Seconds per step (``Place.now``)."""
    update: list[float]
    """Seconds per step without sampling and rewards."""


def make_policy(setting: Setting) -> Policy:
    """The pretrained policy, or one over a thousand numbers; it hardly ever draws the end of a response."""
    if setting.random:
        return random_policy(setting.random, "float32")
    if setting.shape is None:
        policy = load_pretrained(SMOLLM2, "float32")
        policy.tokenizer.chat_template = None  # TRL does not apply one to a text prompt either
        policy.tokenizer.eos_token = "<|endoftext|>"
        return policy
    numbers = {str(number): number for number in range(1000)}
    vocabulary = ScratchVocabulary(
        words=(*numbers, "stop"), stop_words=("stop",), numbers=numbers, state_words=setting.numbers
    )
    return build_scratch_policy(vocabulary, *setting.shape, response_words=RESPONSE, seed=0)


def make_prompts(setting: Setting, step: int) -> list[str]:
    """The prompts of one step, one per group."""
    random = np.random.default_rng(step)
    return [" ".join(map(str, random.integers(100, 1000, setting.numbers))) for _ in range(setting.groups)]


def reward(token_ids: list[int]) -> float:
    """A value that differs between completions."""
    return float(np.mean(token_ids) % 10)
