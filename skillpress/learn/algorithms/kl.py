"""KL to the start policy, as part of a loss, and to the policy that sampled, as a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.learn.algorithms.scored_tokens import ScoredTokens

if TYPE_CHECKING:
    import torch


def low_variance_kl(logprobs: torch.Tensor, reference_logprobs: torch.Tensor) -> torch.Tensor:
    """[tokens] k3 = exp(d) - d - 1 with d = logp^ref - logp.

    The low-variance, non-negative estimator of KL(policy || reference) from the policy's own samples.
    """
    difference = reference_logprobs - logprobs
    return difference.exp() - difference - 1


def with_reference_kl(
    loss: torch.Tensor, metrics: dict[str, torch.Tensor], tokens: ScoredTokens, coefficient: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss plus beta sum_t w_t k3_t, and the metrics plus ``reference_kl``; both unchanged without a
    reference."""
    if tokens.reference_logprobs is None:
        return loss, metrics
    kl = (tokens.weights * low_variance_kl(tokens.logprobs, tokens.reference_logprobs)).sum()
    return loss + coefficient * kl, {**metrics, "reference_kl": kl.detach()}


def sampling_kl(tokens: ScoredTokens) -> torch.Tensor:
    """sum_t w_t (rho_t - 1 - log rho_t), an estimate of the KL from the old policy to this one; a metric."""
    log_ratio = (tokens.logprobs - tokens.old_logprobs).detach()
    return (tokens.weights * (log_ratio.exp() - 1 - log_ratio)).sum()
