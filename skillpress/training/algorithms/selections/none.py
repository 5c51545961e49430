"""No selection: every rollout teaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skillpress.training.algorithms.algorithm import Selection
from skillpress.training.algorithms.batch import Batch


class NoSelection(Selection):
    """Keeps everything."""

    def kept(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True."""
        return np.ones(len(batch.group), np.bool_)
