"""RLOO: the baseline of a rollout is the mean of the others of its task (Ahmadian et al. 2024).

    A_k = score_k - mean over the other trajectories of the group

Leaving the rollout itself out makes the baseline independent of it, hence the gradient unbiased; per
trajectory it is GRPO's unscaled advantage times n / (n - 1). The paper's loss is the plain policy
gradient, of one update per batch; here it is the clipped surrogate, which has that gradient at the
first update and stays right for the minibatches after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skillpress.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.algorithms.clipped_surrogate import ClippedAlgorithm
from skillpress.algorithms.group_statistics import difference, trajectory_scores


@dataclass(frozen=True)
class RLOO(ClippedAlgorithm):
    """REINFORCE with a leave-one-out baseline."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal scores, and for a trajectory that is alone in its group."""
        scores = trajectory_scores(batch)
        others = np.bincount(batch.group)[batch.group] - 1
        summed = np.bincount(batch.group, scores)[batch.group] - scores
        baselines = np.where(others > 0, summed / np.maximum(others, 1), scores)
        found = difference(batch.scores, baselines[batch.trajectory])
        found[others[batch.trajectory] == 0] = 0.0
        return found
