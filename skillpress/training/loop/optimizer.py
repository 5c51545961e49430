"""AdamW (Loshchilov and Hutter 2019) with a warm-up, as a training run configures it.

The learning rate is a function of the training step alone, so a resumed run has no schedule to restore.
All updates of a step have the same rate, as in verl, whose scheduler moves once per training step too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class AdamW:
    """The settings of an update."""

    learning_rate: float
    """Learning rate after the warm-up."""
    weight_decay: float = 0.0
    """Weight decay of every parameter, including biases and norms."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay per update of the first and the second moment."""
    gradient_clipping: float = 1.0
    """The gradient's norm over all parameters is clipped to this; 0 turns clipping off."""
    warmup_steps: int = 0
    """Number of training steps before the first one at the full rate."""

    def over(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.AdamW:
        """The optimizer of these parameters. DeepSpeed clips, since it knows the parts of a gradient."""
        return torch.optim.AdamW(
            parameters, lr=self.learning_rate, betas=self.betas, weight_decay=self.weight_decay, fused=True
        )

    def rate(self, step: int) -> float:
        """The learning rate of training step ``step`` (from 1): a straight line up to the full rate."""
        return self.learning_rate * min(1.0, step / (self.warmup_steps + 1))
