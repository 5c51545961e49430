"""Float32 master weights, so that small updates are not lost.

A bfloat16 weight has 8 bits of mantissa, so an update below 1/512 of its size rounds to nothing. At the
learning rates of fine-tuning that is nearly every update. Weights of that type therefore need float32
masters, which the optimizer changes: DeepSpeed keeps them if bf16 is enabled, and imitation keeps them with
:class:`MasterWeights`. If a small change must show in the bfloat16 weights themselves,
:func:`round_at_random` changes a proportional number of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from skillpress.core.errors import PolicyError


def require_masters(dtype: torch.dtype, name: str, configuration: Mapping[str, Any]) -> None:
    """Raise ``PolicyError`` if a DeepSpeed configuration keeps no float32 masters and weights need them."""
    bf16 = configuration.get("bf16", {})
    kept = bf16.get("enabled", False) and not bf16.get("bf16_master_weights_and_grads", False)
    if dtype != torch.float32 and not kept:
        raise PolicyError(
            f"policy.dtype {str(dtype).removeprefix('torch.')} with training.deepspeed {name}: no float32 "
            "master weights are kept there, so most updates would round to nothing; use a configuration "
            "with bf16 enabled (zero0_bf16 to zero3_bf16), or set policy.dtype to float32"
        )


def round_at_random(weights: torch.Tensor, seed: int) -> torch.Tensor:
    """Round float32 to bfloat16, each weight up or down, more likely to the nearer value. Values that
    bfloat16 can represent stay the same.

    A weight's threshold depends only on the seed and on its position. So equal weights are always rounded in
    the same way, and if many weights grow a little, some of them grow with every step.
    """
    generator = torch.Generator(weights.device).manual_seed(seed)
    thresholds = torch.randint(
        1 << 16, weights.shape, generator=generator, device=weights.device, dtype=torch.int32
    )
    # bfloat16 is float32 without its last 16 bits; a carry out of these gives the next larger size.
    kept = (weights.view(torch.int32) + thresholds) & -(1 << 16)
    return kept.view(torch.float32).to(torch.bfloat16)


class MasterWeights:
    """Float32 masters of a model's parameters. A float32 parameter is its own master."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self.masters = [
            weight if weight.dtype == torch.float32 else weight.detach().float().requires_grad_()
            for weight in self._parameters
        ]
        """The tensors that the optimizer gets."""

    def take_gradients(self) -> None:
        """Add the parameters' gradients to their masters'; call it after every backward pass."""
        for weight, master in self._pairs():
            if weight.grad is not None:
                gradient = weight.grad.float()
                master.grad = gradient if master.grad is None else master.grad + gradient
                weight.grad = None

    def give_weights(self) -> None:
        """Round the masters into the parameters; call it after every step of the optimizer."""
        with torch.no_grad():
            for weight, master in self._pairs():
                weight.copy_(master)

    def state(self) -> list[torch.Tensor]:
        """All masters, for a checkpoint."""
        return [master.detach() for master in self.masters]

    def restore(self, state: list[torch.Tensor]) -> None:
        """Continue from the result of :meth:`state`."""
        with torch.no_grad():
            for master, stored in zip(self.masters, state, strict=True):
                master.copy_(stored)
        self.give_weights()

    def _pairs(self) -> list[tuple[torch.nn.Parameter, torch.Tensor]]:
        """Pairs of a parameter and its master, for parameters that are not their own master."""
        pairs = zip(self._parameters, self.masters, strict=True)
        return [(weight, master) for weight, master in pairs if weight is not master]
