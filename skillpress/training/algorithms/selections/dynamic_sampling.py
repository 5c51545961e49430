"""L0's dynamic sampling, as its released code has it: some questions that teach little are replaced.

A question whose rollouts all have the core reward 0, or all the largest, is dropped with a probability, and
further questions are played in its place. L-Zero, section 3.1, speaks of trajectories that are dropped one by
one. That rule is not here: where a core reward is either 0 or the largest, as in all our environments, it
would drop rollouts by chance alone.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from skillpress.core.seeds import generator
from skillpress.training.algorithms.algorithm import Selection
from skillpress.training.algorithms.batch import Batch


class DynamicSampling(Selection):
    """Drops groups that are all lost or all won, by chance."""

    discard: Annotated[float, Field(ge=0, lt=1)]
    """Probability of dropping a group whose core rewards are all 0 or all the largest; L0 released: 0.5."""
    refills: Annotated[int, Field(ge=0)]
    """The most times per step that dropped groups are replaced; L0 released: 2."""

    @property
    def most_refills(self) -> int:
        """``refills``."""
        return self.refills

    def kept(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True in every group that is mixed, and in the others that were not dropped."""
        lost, won = np.ones(batch.groups, np.bool_), np.ones(batch.groups, np.bool_)
        np.logical_and.at(lost, batch.group, batch.core_reward == 0)
        np.logical_and.at(won, batch.group, batch.core_reward >= batch.core_maximum)
        # One number per group, used or not, so a group's draw does not depend on the rewards of others.
        drawn = generator(seed, "dynamic sampling").random(batch.groups) < self.discard
        kept: NDArray[np.bool_] = ~((lost | won) & drawn)[batch.group]
        return kept
