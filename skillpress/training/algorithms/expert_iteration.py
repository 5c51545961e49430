"""Expert iteration: the policy imitates its own successes (Anthony et al. 2017; for language models STaR,
Zelikman et al. 2022, and ReST-EM, Singh et al. 2024).

    a_k = max(score_k, 0) / largest core reward where the episode succeeded, else 0
    L   = - sum over the tokens of steps with a_k > 0 of a_k logp_t / (number of these tokens) + KL term

This is behaviour cloning on the episodes that pass a filter, and the filter is success. A plain success has
weight 1. Shaping and penalties lower the weight, but never below 0. Failures teach nothing, and the results
of a task's other rollouts do not matter: there is no group, no baseline and no ratio. Each further update on
a batch is supervised learning, so it needs no fresh samples.

The loss divides by the tokens that teach, not by all sampled tokens; otherwise a step with few successes
would hardly move the policy. The usual weights here are w_t = 1 / (all tokens), so advantages are A_k = a_k *
(all tokens) / (tokens that teach). The metric ``imitated`` is the share of tokens that teach. Left out:
restarting each iteration from the start policy, and search or hints that make successes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.policy_gradient import PolicyGradient


class ExpertIteration(PolicyGradient):
    """Filtered behaviour cloning; it adds no keys."""

    smallest_group: ClassVar[int] = 1

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in failures."""
        worth = self._worth(batch)
        total = self._tokens(batch, add)
        return worth * (total["sampled"] / max(total["imitated"], 1.0))

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """The share of tokens that teach; empty if no token was sampled."""
        total = self._tokens(batch, add)
        return {"imitated": total["imitated"] / total["sampled"]} if total["sampled"] else {}

    def _worth(self, batch: Batch) -> Floats:
        """[steps] a_k."""
        return np.maximum(batch.scores, 0.0) / batch.core_maximum * batch.won[batch.trajectory]

    def _tokens(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """Numbers of tokens of the whole step: ``sampled`` counts all, ``imitated`` those that teach."""
        imitated = batch.tokens[self._worth(batch) > 0]
        return add({"sampled": float(batch.tokens.sum()), "imitated": float(imitated.sum())})
