"""The policy gradient's loss with a KL to the start policy, as sums that any batch split can add up.

    L = - sum_t w_t A_t logp_t + beta sum_t w_t k3_t

It has no ratio and no clipping. At the weights that sampled, its gradient is the policy gradient; at other
weights it is the gradient of a weighted likelihood of the sampled tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.training.algorithms.algorithm import Algorithm, ScoredTokens
from skillpress.training.algorithms.kl import with_kl

if TYPE_CHECKING:
    import torch


class PolicyGradient(Algorithm):
    """An algorithm that minimises minus the weighted log-likelihood of the sampled tokens, plus the KL
    term."""

    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of some response tokens.

        ``old_logprobs`` are used only for the metric ``approximate_kl``, which is 0 up to rounding while the
        weights are those that sampled.
        """
        loss = -(tokens.weights * tokens.advantages * tokens.logprobs).sum()
        return with_kl(loss, {}, tokens, self.kl_coefficient)
