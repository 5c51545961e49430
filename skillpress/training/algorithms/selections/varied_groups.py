"""DAPO's filter (Yu et al. 2025): another task's group replaces a group whose rollouts did equally well.

Only the core reward is compared, before penalties and shaping: a group in which every rollout succeeds or
every rollout fails teaches nothing about the task, only about its costs. Groups are kept or dropped whole.
Further tasks are played until the step has all its groups again, at most ``refills`` times; after that the
step learns from the groups it has.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from skillpress.training.algorithms.algorithm import Selection
from skillpress.training.algorithms.batch import Batch


class VariedGroups(Selection):
    """Keeps the groups whose core rewards are not all equal."""

    refills: Annotated[int, Field(ge=0)]
    """The most times per step that dropped groups are replaced."""

    @property
    def most_refills(self) -> int:
        """``refills``."""
        return self.refills

    def kept(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True in every group with different core rewards."""
        count = batch.group.max(initial=-1) + 1
        lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(lowest, batch.group, batch.core_reward)
        np.maximum.at(highest, batch.group, batch.core_reward)
        return (lowest < highest)[batch.group]
