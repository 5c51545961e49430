"""RLOO: the baseline of a rollout is the mean of its task's other rollouts (Ahmadian et al. 2024).

    A_k = score_k - mean over the other trajectories of the group

Leaving the rollout itself out makes the baseline independent of it, hence the gradient unbiased; per
trajectory it is GRPO's unscaled advantage times n / (n - 1). The paper's loss is the plain policy gradient,
with one update per batch. Here it is the clipped surrogate, which has that gradient at the first update and
stays correct for later minibatches. With a ``discount`` below 1 rewards count less the longer they come after
the step (``Batch.discounted``), and a trajectory's score is the mean of its steps' scores.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.clipped_surrogate import Clipped
from skillpress.training.algorithms.group_statistics import compared, trajectory_scores


class RLOO(Clipped):
    """REINFORCE with a leave-one-out baseline."""

    discount: Annotated[float, Field(ge=0, le=1)]
    """gamma, per step."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal trajectories, and for one that is alone in its group."""
        batch = batch.discounted(self.discount)
        scores = trajectory_scores(batch)
        others = np.maximum(np.bincount(batch.group)[batch.group] - 1, 1)
        summed = np.bincount(batch.group, scores)[batch.group] - scores
        return compared(batch, (summed / others)[batch.trajectory])
