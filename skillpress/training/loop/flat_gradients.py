"""DeepSpeed's bfloat16 optimizer without a loop over weights, and without waiting for the device.

DeepSpeed keeps float32 masters and gradients of all weights in one flat tensor each, and AdamW changes the
masters in one operation. But it adds every weight's gradient, measures its norm and clips it one by one: four
operations per weight, of which SmolLM2 has 272. And it reads the norm twice on the host, to look for an
overflow and to decide whether to clip. Here the same values are computed for all weights at once (torch's
``_foreach`` operations), and both decisions are made on the device.

Clipping multiplies by min(1, most / norm). The norm is computed in DeepSpeed's order, so weights are the same
to the bit. If the norm is not finite, AdamW skips the step by its ``found_inf``, as it does in mixed
precision.
"""

from __future__ import annotations

from typing import Any

import torch
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer

EPSILON = 1e-6
"""Added to the norm before it divides, as DeepSpeed does."""


class FlatGradients(BF16_Optimizer):  # type: ignore[misc]
    """DeepSpeed's optimizer with faster forms of its steps; its state and its checkpoints are the same."""

    @classmethod
    def adopt(cls, optimizer: Any) -> None:
        """Give DeepSpeed's bfloat16 optimizer this class; leave any other optimizer unchanged."""
        # DeepSpeed's engine names the class itself, so there is no other door.
        if type(optimizer) is BF16_Optimizer and optimizer.grad_acc_dtype == torch.float32:
            optimizer.__class__ = cls

    @torch.no_grad()
    def update_hp_grads(self, clear_lp_grads: bool = False) -> None:
        """Add the weights' gradients to the float32 ones."""
        if self.immediate_grad_update:
            return
        for weights, gradients, known in zip(
            self.bf16_groups, self.fp32_groups_gradients, self.fp32_groups_has_gradients, strict=True
        ):
            places = [place for place, weight in enumerate(weights) if weight.grad is not None]
            if not places:
                continue
            new = [weights[place].grad.view_as(gradients[place]) for place in places]
            torch._foreach_add_([gradients[place] for place in places], new)
            for place in places:
                weights[place]._hp_grad = gradients[place]
                known[place] = True
            if clear_lp_grads:
                torch._foreach_zero_([weights[place].grad for place in places])

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Clip, let AdamW change the masters, and round them into the weights."""
        self.overflow = False  # the host does not know; AdamW skips the step itself
        gradients, _ = self.get_grads_for_norm()
        norm = torch.stack(torch._foreach_norm(gradients)).pow(2.0).sum().pow(0.5)
        finite = norm.isfinite()
        self._global_grad_norm = torch.where(finite, norm, torch.inf)
        if self.clip_grad > 0.0:
            # 1 where nothing is clipped, which changes no bit.
            factor = (self.clip_grad / (self._global_grad_norm + EPSILON)).clamp(max=1.0)
            for flat in self.fp32_groups_gradients_flat:
                flat.mul_(factor)
        for masters, part in zip(
            self.fp32_groups_flat_partition, self.fp32_groups_gradient_flat_partition, strict=True
        ):
            masters.grad = part
        self.optimizer.found_inf = (~finite).float()
        self.optimizer.step()
        self._lazy_init_hp_params_optimizer_state()
        self.update_lp_params()
        self.clear_hp_grads()
