"""GSPO: one ratio per response, the geometric mean over its tokens (Zheng et al. 2025, Eq. 5 to 7).

    s_i = exp(1/|y_i| sum_t (logp_t - logp_t^old))
    A_k = (score_k - mean(group)) / (std(group) + eps)
    L   = - 1/N sum_i min(s_i A_i, clip(s_i, 1 - c_low, 1 + c_high) A_i)

Rewards are given to responses, so each response is corrected and clipped as a whole. The mean over its tokens
brings all lengths into one range. That range is far narrower than that of a token's ratio: the paper has
c_low = 0.0003 and c_high = 0.0004, for responses of thousands of tokens.

The paper's response is a whole rollout. Here each decision of a trajectory is a response with its own state,
and N counts the decisions of the step. A response counts once whatever its length (``sequence_mean``). The KL
to the start policy and the importance weights are those of ``clipped_surrogate.py``; the paper has neither.
If such weights differ between the tokens of a response, A_i is multiplied by their mean. Left out:
GSPO-token, the paper's variant for advantages per token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from skillpress.training.algorithms.algorithm import ScoredTokens, token_weights
from skillpress.training.algorithms.batch import Batch, Floats, Indices, SumOverRanks
from skillpress.training.algorithms.group_statistics import Weighting, standardised
from skillpress.training.algorithms.importance_weights import Corrected
from skillpress.training.algorithms.kl import outside, with_kl
from skillpress.training.algorithms.ratio_levels import clipped_units, unit_sums

if TYPE_CHECKING:
    import torch


class GSPO(Corrected):
    """Group sequence policy optimisation."""

    baseline_weighting: Weighting
    """What counts once in the group's mean and deviation."""
    clip_low: Annotated[float, Field(gt=0, lt=1)]
    """Lower end of the clip is 1 - clip_low."""
    clip_high: Annotated[float, Field(gt=0)]
    """Upper end of the clip is 1 + clip_high."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal scores, or of equal trajectories."""
        return standardised(batch, self.baseline_weighting)

    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Pessimistic within the clip, response by response, with the KL term.

        Returns:
            The loss of some responses, and metrics; ``clip_fraction`` is a share of responses.
        """
        low, high = 1 - self.clip_low, 1 + self.clip_high
        log_ratios = tokens.logprobs - tokens.old_logprobs
        sums = unit_sums(log_ratios, tokens.advantages, tokens.weights, tokens.response)
        loss, seen = clipped_units(tokens.logprobs, sums, low, high, normalised=True)
        return with_kl(loss, outside(tokens, seen, low, high), tokens, self.kl_coefficient)

    def token_weights(self, lengths: Indices, tokens: float, sequences: float, longest: int) -> Floats:
        """[samples] weights that count every response once."""
        return token_weights(lengths, "sequence_mean", tokens, sequences)
