"""DAPO: decoupled clip and dynamic sampling (Yu et al. 2025, arXiv 2503.14476, section 3).

    A_k = (score_k - p_k - mean(group)) / (std(group) + eps), each trajectory of the group counting once
    p_k = overlong_penalty * R * clip((|v_k| - (1 - c) L) / (c L), 0, 1)

Its four parts, and where they are in this repository:

    clip higher         ``clip_high`` above ``clip_low`` (0.28 and 0.2), so that unlikely tokens may grow
    dynamic sampling    ``select: varied_groups``: groups of equal success are replaced by other tasks'
    token-level loss    ``aggregation: token_mean``: every token of the step has the same weight
    overlong shaping    p_k, Eq. 13: a response v_k close to the longest allowed length, L, is punished

The punishment is a part of the reward that counts for its own step alone, since the next step's response has
its own length. It grows over the last share c of L (4096 of 20480 tokens in the paper). It is a share of R,
the reward of a success, so it suits every scale of rewards. The paper's is 1 where an answer earns 1 or -1,
half of their difference. The metric ``overlong`` is the share of punished responses. Left out: answers
that were cut off are not hidden from the loss, which the paper tries before it arrives at p_k. The paper has
no KL term; here it is optional.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.clipped_surrogate import Clipped
from skillpress.training.algorithms.group_statistics import standardised

PART = "dapo/overlong"
"""Name of the punishment among the parts of the reward."""


class DAPO(Clipped):
    """Decoupled clip and dynamic sampling policy optimisation."""

    overlong_share: Annotated[float, Field(gt=0, le=1)]
    """c, the last share of the longest allowed length, in which length costs."""
    overlong_penalty: Annotated[float, Field(ge=0, le=1)]
    """Cost of a response of the longest allowed length, as a part of ``reward.success``; 0 turns overlong
    shaping off."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal scores, or of equal trajectories."""
        costs = self.overlong_penalty * batch.core_maximum * self._overlong(batch)
        punished = replace(batch, parts={**batch.parts, PART: -costs}, credit={**batch.credit, PART: "step"})
        return standardised(punished, "per_trajectory")

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """The share of responses that are too long; empty if no response was sampled."""
        total = add(
            {
                "overlong": float((self._overlong(batch) > 0).sum()),
                "responses": float((batch.tokens > 0).sum()),
            }
        )
        return {"overlong": total["overlong"] / total["responses"]} if total["responses"] else {}

    def _overlong(self, batch: Batch) -> Floats:
        """[steps] how far each response reaches into the last share of the longest length, 0 to 1."""
        share = self.overlong_share
        reached = (batch.tokens / batch.longest_response - (1 - share)) / share
        # Lengths are whole tokens, so less than a millionth of the share is a rounding error.
        return np.where(reached > 1e-6, np.minimum(reached, 1.0), 0.0)
