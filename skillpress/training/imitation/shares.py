"""The optimizer's state of imitation, divided among the ranks (ZeRO stage 1, Rajbhandari et al. 2020).

Every rank needs all weights and all gradients, but each weight is updated by one rank alone, its owner. The
owner keeps the weight's float32 master and the optimizer's moments, and sends the updated weight to the
others. Without shares, all ranks would make the same update of every weight, so results are equal to the bit.

Tensors stay whole, because Muon needs whole matrices. They are dealt out by size, the largest first. So a
rank owns at most its equal part plus one tensor.

Gradients are added up in one float32 buffer, which is summed over the ranks in place, in one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from skillpress.models.policy.precision import MasterWeights
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.imitation.optimizers import NamedWeights

LARGEST_NORM = 1.0
"""Gradients are scaled down to this norm."""


class Gradients(Protocol):
    """Adds up the gradients of several passes."""

    def take_gradients(self) -> None:
        """Add the parameters' gradients to the sums; called after every backward pass."""


class Updated(Gradients, Protocol):
    """The weights as an optimizer updates them."""

    own: NamedWeights
    """The tensors that this rank's optimizers get, with their names."""

    def zero_gradients(self) -> None:
        """Forget the gradients of the last update."""

    def clip(self) -> None:
        """Sum the gradients over the ranks, scale them, and give them to the tensors in ``own``."""

    def give_weights(self) -> None:
        """Round the updated tensors into the parameters, on all ranks."""

    def state(self) -> list[torch.Tensor]:
        """This rank's masters, for a checkpoint."""

    def restore(self, state: list[torch.Tensor]) -> None:
        """Continue from the result of :meth:`state`; all ranks call this."""


class Alone:
    """All weights, in one process."""

    def __init__(self, named: Sequence[tuple[str, torch.nn.Parameter]]) -> None:
        self._weights = MasterWeights(weight for _, weight in named)
        self._masters = self._weights.masters
        self.own: NamedWeights = list(zip([name for name, _ in named], self._masters, strict=True))
        self.take_gradients = self._weights.take_gradients
        self.give_weights = self._weights.give_weights
        self.state, self.restore = self._weights.state, self._weights.restore

    def zero_gradients(self) -> None:
        for master in self._masters:
            master.grad = None

    def clip(self) -> None:
        torch.nn.utils.clip_grad_norm_(self._masters, LARGEST_NORM)


class Shared:
    """All weights, of which each rank updates its own."""

    def __init__(self, named: Sequence[tuple[str, torch.nn.Parameter]], ranks: Ranks) -> None:
        """All ranks call this with the same weights."""
        self._weights, self._ranks = [weight for _, weight in named], ranks
        sizes = [weight.numel() for weight in self._weights]
        self._owners = owners(sizes, ranks.size)
        mine = [index for index, owner in enumerate(self._owners) if owner == ranks.rank]
        self._flat = torch.zeros(sum(sizes), dtype=torch.float32, device=self._weights[0].device)
        parts = self._flat.split(sizes)
        self._gradients = [part.view_as(weight) for part, weight in zip(parts, self._weights, strict=True)]
        self._own = MasterWeights(self._weights[index] for index in mine)
        self.own: NamedWeights = list(
            zip([named[index][0] for index in mine], self._own.masters, strict=True)
        )
        self._own_gradients = [self._gradients[index] for index in mine]
        self.state = self._own.state

    def zero_gradients(self) -> None:
        self._flat.zero_()
        for _, master in self.own:
            master.grad = None  # a float32 weight is its own master, and a pass adds to its gradient

    def take_gradients(self) -> None:
        for weight, total in zip(self._weights, self._gradients, strict=True):
            if weight.grad is not None:
                total += weight.grad
                weight.grad = None

    def clip(self) -> None:
        self._ranks.sum_in_place(self._flat)
        # Of all weights, not of the rank's own: otherwise ranks would scale by different norms.
        norm = torch.nn.utils.get_total_norm(self._gradients)
        for (_, master), gradient in zip(self.own, self._own_gradients, strict=True):
            master.grad = gradient
        torch.nn.utils.clip_grads_with_norm_([master for _, master in self.own], LARGEST_NORM, norm)

    def give_weights(self) -> None:
        self._own.give_weights()
        with torch.no_grad():
            for rank in range(self._ranks.size):
                theirs = [
                    weight for weight, owner in zip(self._weights, self._owners, strict=True) if owner == rank
                ]
                self._ranks.send(theirs, rank)

    def restore(self, state: list[torch.Tensor]) -> None:
        self._own.restore(state)
        self.give_weights()


def updated(named: Sequence[tuple[str, torch.nn.Parameter]], ranks: Ranks) -> Updated:
    """The weights of a model, as these ranks update them."""
    return Alone(named) if ranks.size == 1 else Shared(named, ranks)


def owners(sizes: Sequence[int], ranks: int) -> list[int]:
    """The rank that owns each tensor: the largest tensor first, each for the rank that has least."""
    found, held = [0] * len(sizes), [0] * ranks
    for index in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        found[index] = held.index(min(held))
        held[found[index]] += sizes[index]
    return found
