"""The optimizers of imitation.

Muon (Jordan et al. 2024) makes the momentum of a matrix orthogonal and moves the matrix by it, so that all
directions move by the same amount. A few directions hold most of the gradient, so Adam moves the others
little; Muon learns these sooner. It is for the matrices between layers. Embeddings, the output layer and
norms keep AdamW, at the same rate, since ``match_rms_adamw`` gives Muon's updates the size of AdamW's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

NamedWeights = Sequence[tuple[str, torch.Tensor]]
_WEIGHT_DECAY = 0.01
_NOT_BETWEEN_LAYERS = ("embed", "lm_head")


def adamw(weights: NamedWeights, learning_rate: float) -> list[torch.optim.Optimizer]:
    """AdamW for all weights."""
    moved = [weight for _, weight in weights]
    return [torch.optim.AdamW(moved, lr=learning_rate, weight_decay=_WEIGHT_DECAY, fused=True)]


def muon(weights: NamedWeights, learning_rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between layers, AdamW for the rest."""
    between = [(name, weight) for name, weight in weights if is_between_layers(name, weight)]
    rest = [(name, weight) for name, weight in weights if not is_between_layers(name, weight)]
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
