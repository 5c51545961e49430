"""GiGPO: compares the trajectories of a task, and also the steps that were taken in the same state.

Group-in-group policy optimisation (Feng et al. 2025, arXiv 2505.10978), Eq. 3 to 8:

    A_k   = A^E + omega A^S_k
    A^E   = (R(tau) - mean(group)) / F_norm, each trajectory of the task counting once
    R_k   = sum over k' >= k of gamma^(k'-k) r_k'
    A^S_k = (R_k - mean over the steps of the group that were taken in k's state) / F_norm

F_norm is the deviation of the same returns (``scale: std``) or 1 (``none``); the paper uses both. The
environment names a state (``Info.state_key``); if it does not, the observation is the state, whatever the
prompt shows of the past. When an episode returns to a state, its own steps there are compared too. A step
that is alone in its state has A^S = 0. If all steps are alone, this is GRPO, so two metrics describe company:

    step_groups/company   share of steps in whose state another step of their group was taken
    step_groups/size      mean number of steps per state

A^E of a group whose trajectories are all the same is 0; A^S is too, unless they come back to a state. A part
of the reward that counts for its own step alone is in that step's R_k and in no earlier one's. The loss is
the clipped surrogate. Left out: a later option of the authors' code treats similar states as one.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.clipped_surrogate import Clipped
from skillpress.training.algorithms.group_statistics import EPSILON, centred, difference, standardised


class GiGPO(Clipped):
    """Group-in-group policy optimisation."""

    scale: Literal["std", "none"]
    """F_norm of both parts: std or 1."""
    step_weight: Annotated[float, Field(ge=0)]
    """omega; 0 is GRPO."""
    discount: Annotated[float, Field(ge=0, le=1)]
    """gamma of R_k, per step."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal returns where its steps in one state have equal R_k too."""
        relative = centred if self.scale == "none" else standardised
        of_trajectories = relative(batch, "per_trajectory")
        return of_trajectories + self.step_weight * self._of_steps(batch)

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """How often steps share a state; empty if there is no step to learn from."""
        sizes = np.bincount(batch.state)
        total = add(
            {
                "steps": float(sizes.sum()),
                "states": float(len(sizes)),
                "company": float(sizes[sizes > 1].sum()),
            }
        )
        if not total["steps"]:
            return {}
        return {
            "step_groups/company": total["company"] / total["steps"],
            "step_groups/size": total["steps"] / total["states"],
        }

    def _of_steps(self, batch: Batch) -> Floats:
        """[steps] A^S."""
        returns, sizes = batch.rewards_to_go(self.discount), np.bincount(batch.state)
        means = np.bincount(batch.state, returns) / sizes
        relative = difference(returns, means[batch.state])
        if self.scale == "none":
            return relative
        # The sample variance, as in groups; a step that is alone has 0 either way.
        variances = np.bincount(batch.state, relative**2) / np.maximum(sizes - 1, 1)
        scaled: Floats = relative / (np.sqrt(variances)[batch.state] + EPSILON)
        return scaled
