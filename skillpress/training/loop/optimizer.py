"""AdamW (Loshchilov and Hutter 2019) with a warm-up, and DeepSpeed around it, as a training configures them.

The learning rate is a function of the training step alone, so a resumed run has no schedule to restore.
All updates of a step have the same rate, as in verl, whose scheduler moves once per training step too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from skillpress.training.loop.parameters import DEEPSPEED


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
    configuration: str = "zero1_fp32"
    """The name of a file in ``infra/deepspeed``, which divides weights and moments among the ranks."""

    @property
    def deepspeed(self) -> dict[str, Any]:
        """DeepSpeed's settings.

        Raises:
            ValueError: no file has the configuration's name.
        """
        return {**read_configuration(self.configuration), "gradient_clipping": self.gradient_clipping}

    def over(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.AdamW:
        """The optimizer of these parameters. DeepSpeed clips, since it knows the parts of a gradient."""
        return torch.optim.AdamW(
            parameters, lr=self.learning_rate, betas=self.betas, weight_decay=self.weight_decay, fused=True
        )

    def rate(self, step: int) -> float:
        """The learning rate of training step ``step`` (from 1): a straight line up to the full rate."""
        # Not step / warmup_steps: the full rate comes in the step *after* the warm-up.
        return self.learning_rate * min(1.0, step / (self.warmup_steps + 1))


def read_configuration(name: str) -> dict[str, Any]:
    """The DeepSpeed configuration of ``infra/deepspeed`` with this name.

    Raises:
        ValueError: no configuration has this name; the message lists all names.
    """
    path = DEEPSPEED / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in DEEPSPEED.glob("*.json")))
        raise ValueError(f"training.deepspeed is {name!r}; allowed: {known}")
    configuration: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return configuration
