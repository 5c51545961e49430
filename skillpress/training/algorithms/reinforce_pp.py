"""REINFORCE++ as L0 defines it (L-Zero, section 3.1; after Hu 2025).

    G_k = sum over k' >= k of gamma^(k'-k) r_k'
    A_k = (G_k - E[G]) / sqrt(Var[G] + eps), over all steps of all trajectories of the batch
    L   = - sum_t w_t A_t logp_t + beta sum_t w_t k3_t, where every token of the batch has the same weight

It is strictly on-policy: it has no ratio and no clipping, so a batch is one update. It has no groups: a step
is compared with every other step of the batch, whatever its task. A part of the reward that counts for its
own step alone is added to that step's G_k after discounting; no earlier step receives it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.group_statistics import centred_over_ranks
from skillpress.training.algorithms.policy_gradient import PolicyGradient

EPSILON = 1e-8
"""Inside the root, so that nothing is divided by 0."""


class ReinforcePP(PolicyGradient):
    """Discounted returns, normalised over the whole batch."""

    one_update_per_step: ClassVar[bool] = True
    smallest_group: ClassVar[int] = 1

    discount: Annotated[float, Field(ge=0, le=1)]
    """gamma, per step."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; all 0 if every step has the same return."""
        returns = batch.rewards_to_go(self.discount)
        centred, variance = centred_over_ranks(returns, np.ones(len(returns), np.bool_), add)
        scaled: Floats = centred / np.sqrt(variance + EPSILON)
        return scaled
