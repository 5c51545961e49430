"""L0's dynamic sampling (L-Zero, section 3.1) discards some perfect and some failed rollouts at random.

A trajectory whose core reward is 0 or the largest possible is discarded with a probability that the paper
does not give. All others are kept. Nothing is played in place of the discarded ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from skillpress.core.seeds import generator
from skillpress.learn.algorithms.batch import Batch
from skillpress.learn.algorithms.parameters import SelectionParameters


class DynamicSamplingParameters(SelectionParameters):
    """``select: {name: dynamic_sampling, discard: 0.5}``."""

    discard: Annotated[float, Field(ge=0, lt=1)]
    """Probability of discarding a trajectory of zero or maximal core reward."""


@dataclass(frozen=True)
class DynamicSampling:
    """Discards extreme trajectories at random."""

    Parameters: ClassVar[type[SelectionParameters]] = DynamicSamplingParameters

    parameters: DynamicSamplingParameters

    def __call__(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True between the extremes, and for extreme ones that were not discarded."""
        extreme = (batch.core_reward == 0) | (batch.core_reward >= batch.core_maximum)
        drawn = generator(seed, "dynamic sampling").random(len(batch.group)) < self.parameters.discard
        kept: NDArray[np.bool_] = ~(extreme & drawn)
        return kept
