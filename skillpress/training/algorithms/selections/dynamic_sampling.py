"""L0's dynamic sampling (L-Zero, section 3.1) discards some perfect and some failed rollouts at random.

A trajectory whose core reward is 0 or the largest possible is discarded with a probability that the paper
does not give. All others are kept. Nothing is played in place of the discarded ones.
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
    """Discards extreme trajectories at random."""

    discard: Annotated[float, Field(ge=0, lt=1)]
    """Probability of discarding a trajectory of zero or maximal core reward."""

    def kept(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True between the extremes, and for extreme ones that were not discarded."""
        extreme = (batch.core_reward == 0) | (batch.core_reward >= batch.core_maximum)
        drawn = generator(seed, "dynamic sampling").random(len(batch.group)) < self.discard
        kept: NDArray[np.bool_] = ~(extreme & drawn)
        return kept
