"""CISPO: the importance weight is clipped, not the update (MiniMax-M1, 2025, section 3.1).

    r_t = sg(clip(rho_t, 1 - c_low, 1 + c_high)),  rho_t = exp(logp_t - logp_t^old)
    A_k = (score_k - mean(group)) / (std(group) + eps)
    L   = - sum_t w_t r_t A_t logp_t

sg stops the gradient: it is REINFORCE with a truncated importance weight per token. The clipped surrogate
drops a token once its ratio has left the clip, and the rare tokens at which a thought turns around leave it
first. Here every token keeps a gradient, with a weight of at most 1 + c_high. As in the paper, every token of
the step has the same weight (w_t = 1 / tokens), and with c_low = 1 weights have no lower bound.

The paper has no KL term. It tunes 1 + c_high but does not print the value. The part that it takes from DAPO
is in another file: the selection ``varied_groups`` replaces groups of equal rewards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from skillpress.training.algorithms.algorithm import ScoredTokens
from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.group_statistics import Weighting, standardised
from skillpress.training.algorithms.importance_weights import Corrected
from skillpress.training.algorithms.kl import outside, with_kl

if TYPE_CHECKING:
    import torch


class CISPO(Corrected):
    """Clipped importance sampling-weight policy optimisation."""

    baseline_weighting: Weighting
    """Whether each trajectory or each step counts once in the group's mean and deviation."""
    clip_low: Annotated[float, Field(gt=0, le=1)]
    """Lower end of the clip is 1 - clip_low; with 1 weights have no lower bound, as in the paper."""
    clip_high: Annotated[float, Field(gt=0)]
    """Upper end of the clip is 1 + clip_high."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal scores, or of equal trajectories."""
        return standardised(batch, self.baseline_weighting)

    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Minus the log-likelihood of the sampled tokens, times advantage and clipped importance weight.

        Returns:
            The loss of some tokens, and metrics; ``clip_fraction`` is the share of clipped weights.
        """
        low, high = 1 - self.clip_low, 1 + self.clip_high
        ratios = (tokens.logprobs - tokens.old_logprobs).detach().exp()
        loss = -(tokens.weights * ratios.clamp(low, high) * tokens.advantages * tokens.logprobs).sum()
        return with_kl(loss, outside(tokens, ratios, low, high), tokens, self.kl_coefficient)
