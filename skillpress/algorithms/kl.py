"""The KL of the policy to its start, as algorithms put it into their loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def low_variance_kl(logprobs: torch.Tensor, reference_logprobs: torch.Tensor) -> torch.Tensor:
    """[tokens] k3 = exp(d) - d - 1 with d = logp^ref - logp.

    The low-variance, non-negative estimator of KL(policy || reference) from the policy's own samples.
    """
    difference = reference_logprobs - logprobs
    return difference.exp() - difference - 1
