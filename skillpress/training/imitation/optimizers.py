"""The optimizers of imitation, and its learning rate.

Muon (Jordan et al. 2024) makes the momentum of a matrix orthogonal and moves the matrix by it, so that all
directions move by the same amount. A few directions hold most of the gradient, so Adam moves the others
little; Muon learns these sooner. It is for the matrices between layers. Embeddings, the output layer and
norms keep AdamW, at the same rate, since ``match_rms_adamw`` gives Muon's updates the size of AdamW's.

The learning rate rises linearly over the first updates and then falls linearly to 0. The number of updates is
known when the demonstrations are made. If there are few updates, the warm-up is a share of them: with a
warm-up of fifty, twenty updates would never come near the chosen rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from skillpress.training.imitation.parameters import ImitationParameters

NamedWeights = Sequence[tuple[str, torch.Tensor]]
_WEIGHT_DECAY = 0.01
_NOT_BETWEEN_LAYERS = ("embed", "lm_head")
MOST = 10
"""At most one update in ten warms up, so the largest rate is at least 0.9 of the chosen one."""


def adamw(weights: NamedWeights, learning_rate: float) -> list[torch.optim.Optimizer]:
    """AdamW for all weights; no optimizer without weights."""
    moved = [weight for _, weight in weights]
    if not moved:
        return []
    return [torch.optim.AdamW(moved, lr=learning_rate, weight_decay=_WEIGHT_DECAY, fused=True)]


def muon(weights: NamedWeights, learning_rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between layers, AdamW for the rest; no optimizer for a part without weights."""
    between = [(name, weight) for name, weight in weights if is_between_layers(name, weight)]
    rest = [(name, weight) for name, weight in weights if not is_between_layers(name, weight)]
    if not between:
        return adamw(rest, learning_rate)
    matrices = torch.optim.Muon(
        [weight for _, weight in between],
        lr=learning_rate,
        weight_decay=_WEIGHT_DECAY,
        adjust_lr_fn="match_rms_adamw",
    )
    return [matrices, *adamw(rest, learning_rate)]


def is_between_layers(name: str, weight: torch.Tensor) -> bool:
    """Whether a weight maps one layer's vectors to another's."""
    return weight.ndim == 2 and not any(part in name for part in _NOT_BETWEEN_LAYERS)


OPTIMIZERS: Mapping[str, Callable[[NamedWeights, float], list[torch.optim.Optimizer]]] = {
    "adamw": adamw,
    "muon": muon,
}


@dataclass(frozen=True)
class Schedule:
    """The factor of ``imitation.learning_rate`` in each update."""

    updates: int
    """Number of all updates."""
    warmup: int
    """Number of updates that warm up. The last of them has the largest rate."""

    @classmethod
    def of(cls, parameters: ImitationParameters, updates: int) -> Schedule:
        """The schedule for this number of updates."""
        return cls(updates, max(1, min(parameters.warmup_updates, updates // MOST)))

    def factor(self, done: int) -> float:
        """The factor of the update that follows ``done`` others."""
        # done + 1: at a rate of 0 the first update would be wasted.
        return min(1.0, (done + 1) / self.warmup) * (1 - done / self.updates)

    @property
    def peak(self) -> float:
        """The largest factor."""
        return self.factor(self.warmup - 1)
