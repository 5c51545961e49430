"""GRPO: a rollout is judged against the other rollouts of its task (Shao et al. 2024; ReuseRL Alg. 1).

    A_k = score_k - mean(group), divided by (std(group) + eps) if scaled

Dividing is a choice: if all rollouts of a group succeed, their scores differ only by shaping, and the
division scales that difference to full size whatever its weight lambda is. With a ``discount`` below 1
rewards count less the longer they come after the step (Language as a Universal Interface, section 1.3;
``Batch.discounted``): an early step of a long success scores less than its last step. It is compared with the
group's mean of each trajectory's mean score, or of all steps' scores. So the advantages of a group of
successes are all 0 only if all its trajectories are the same. At 1, as in the papers, every step's score is
its trajectory's return. There is no value model.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.clipped_surrogate import Clipped
from skillpress.training.algorithms.group_statistics import Weighting, centred, standardised


class GRPO(Clipped):
    """Group-relative policy optimisation."""

    scale: Literal["std", "none"]
    """std divides advantages by the group's standard deviation; none does not."""
    baseline_weighting: Weighting
    """What counts once in a group's mean and deviation: per_trajectory or per_step."""
    discount: Annotated[float, Field(ge=0, le=1)]
    """gamma: later rewards count less (docs/methods.md)."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal scores, or of equal trajectories."""
        weighting, batch = self.baseline_weighting, batch.discounted(self.discount)
        if self.scale == "none":
            return centred(batch, weighting)
        return standardised(batch, weighting)
