"""The clipped surrogate with a KL to the start policy, as sums that any batch split can add up.

    L = - sum_t w_t min(rho_t A_t, clip(rho_t, 1 - c, 1 + c) A_t) + beta sum_t w_t k3_t
    rho_t = exp(logp_t - logp_t^old),   k3_t = exp(d_t) - d_t - 1,   d_t = logp_t^ref - logp_t

k3 is the low-variance, non-negative estimator of KL(policy || reference). The weights w_t are set
by :func:`token_weights` for the whole update, before it is split into microbatches or skipped
samples are taken out, so neither changes the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClippedSurrogate:
    """PPO's pessimistic surrogate (Schulman et al. 2017) with GRPO's KL term."""

    clip: float
    """c: ratios beyond 1 +- c stop giving gradient."""
    kl_coefficient: float
    """beta; 0 needs no reference."""

    def __call__(
        self,
        logprobs: torch.Tensor,
        old_logprobs: torch.Tensor,
        advantages: torch.Tensor,
        weights: torch.Tensor,
        reference_logprobs: torch.Tensor | None,
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of some response tokens, each argument [tokens].

        Returns:
            The weighted sum over tokens (a scalar to minimise), and metrics that are weighted sums
            too: ``approximate_kl`` to the sampling policy, ``clip_fraction``, ``reference_kl``.
        """
        log_ratio = logprobs - old_logprobs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
        loss = -(weights * torch.minimum(ratio * advantages, clipped * advantages)).sum()
        with torch.no_grad():
            metrics = {
                "approximate_kl": (weights * (ratio - 1 - log_ratio)).sum(),
                "clip_fraction": (weights * ((ratio - 1).abs() > self.clip)).sum(),
            }
        if reference_logprobs is not None:
            difference = reference_logprobs - logprobs
            kl = (weights * (difference.exp() - difference - 1)).sum()
            loss = loss + self.kl_coefficient * kl
            metrics["reference_kl"] = kl.detach()
        return loss, metrics


def token_weights(
    lengths: NDArray[np.int64],
    aggregation: Literal["token_mean", "sequence_mean"],
    tokens: float,
    sequences: float,
) -> NDArray[np.float64]:
    """[samples] weight w of each token of a sample, such that the weights of a whole step sum to 1.

    ``token_mean`` weighs every token alike; ``sequence_mean`` every sample alike, whatever its length.

    Args:
        lengths: [samples] response tokens per sample, at least 1 each.
        tokens: response tokens of the whole step, over all ranks and with those that are skipped.
        sequences: samples of the whole step, likewise.
    """
    if aggregation == "token_mean":
        return np.full(len(lengths), 1.0 / tokens)
    return 1.0 / (lengths.astype(np.float64) * sequences)
