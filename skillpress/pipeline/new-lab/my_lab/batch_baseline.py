"""REINFORCE against the mean score of the step; failures may count for less than successes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from skillpress.training.algorithms.algorithm import Algorithm, ScoredTokens
from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.kl import reference_kl

if TYPE_CHECKING:
    import torch


class BatchBaseline(Algorithm):
    """``algorithm: {name: my_lab.batch_baseline:BatchBaseline, ...}``.

    A_k = w (score_k - mean of all scores), w = 1 for a success.
    """

    one_update_per_step: ClassVar[bool] = True  # the loss has no ratio
    smallest_group: ClassVar[int] = 1  # rollouts of a task are not compared with each other

    failure_weight: Annotated[float, Field(ge=0, le=1)]
    """The factor for a failure's advantage."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; the mean is over the steps of all processes."""
        total = add({"score": float(batch.scores.sum()), "steps": float(len(batch.scores))})
        weights = np.where(batch.won, 1.0, self.failure_weight)
        centred = batch.scores - total["score"] / max(total["steps"], 1.0)
        weighted: Floats = weights[batch.trajectory] * centred
        return weighted

    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """- sum_t w_t A_t logp_t and the KL to the start policy, and metrics that are weighted sums too."""
        loss = -(tokens.weights * tokens.advantages * tokens.logprobs).sum()
        metrics = {"taught": (tokens.weights * (tokens.advantages != 0)).sum()}
        if tokens.reference_logprobs is not None:
            kl = reference_kl(tokens)
            loss = loss + self.kl_coefficient * kl
            metrics["reference_kl"] = kl.detach()
        return loss, metrics
