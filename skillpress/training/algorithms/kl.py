"""KL to the start policy, as part of a loss, and to the policy that sampled, as a metric.

With ``algorithm.kl_share`` below 1 the reference has scored only a random share of the tokens. Each counts
once over the probability of being drawn, so the term and its gradient keep their expectation
(``training/kl_share.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.training.algorithms.algorithm import ScoredTokens

if TYPE_CHECKING:
    import torch


def low_variance_kl(logprobs: torch.Tensor, reference_logprobs: torch.Tensor) -> torch.Tensor:
    """[tokens] k3 = exp(d) - d - 1 with d = logp^ref - logp.

    The low-variance, non-negative estimator of KL(policy || reference) from the policy's own samples.
    """
    difference = reference_logprobs - logprobs
    return difference.exp() - difference - 1


def reference_kl(tokens: ScoredTokens) -> torch.Tensor:
    """sum_t w_t k3_t, or its unbiased estimate if the reference has scored a share of the tokens.

    The tokens must have log-probabilities of the reference.
    """
    assert tokens.reference_logprobs is not None
    if tokens.kl_weights is None:
        return (tokens.weights * low_variance_kl(tokens.logprobs, tokens.reference_logprobs)).sum()
    # Other tokens are left out, not multiplied by 0: their reference is NaN, and 0 x NaN is NaN.
    drawn = tokens.kl_weights > 0
    k3 = low_variance_kl(tokens.logprobs[drawn], tokens.reference_logprobs[drawn])
    return (tokens.kl_weights[drawn] * k3).sum()


def with_kl(
    loss: torch.Tensor, metrics: dict[str, torch.Tensor], tokens: ScoredTokens, coefficient: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss plus beta sum_t w_t k3_t if there is a reference, and ``approximate_kl``, the metrics and
    ``reference_kl``."""
    metrics = {"approximate_kl": sampling_kl(tokens), **metrics}
    if tokens.reference_logprobs is None:
        return loss, metrics
    kl = reference_kl(tokens)
    return loss + coefficient * kl, {**metrics, "reference_kl": kl.detach()}


def outside(tokens: ScoredTokens, ratios: torch.Tensor, low: float, high: float) -> dict[str, torch.Tensor]:
    """``clip_fraction``: the share of tokens whose ratio is outside the clip."""
    return {"clip_fraction": (tokens.weights * ((ratios < low) | (ratios > high))).sum()}


def sampling_kl(tokens: ScoredTokens) -> torch.Tensor:
    """sum_t w_t (rho_t - 1 - log rho_t), an estimate of the KL from the old policy to this one; a metric."""
    log_ratio = (tokens.logprobs - tokens.old_logprobs).detach()
    return (tokens.weights * (log_ratio.exp() - 1 - log_ratio)).sum()
