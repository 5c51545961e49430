"""No selection: every rollout teaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skillpress.learn.algorithms.batch import Batch
from skillpress.learn.algorithms.parameters import SelectionParameters


class NoSelectionParameters(SelectionParameters):
    """``select: {name: none}``."""


@dataclass(frozen=True)
class NoSelection:
    """Keeps everything."""

    Parameters: ClassVar[type[SelectionParameters]] = NoSelectionParameters

    parameters: NoSelectionParameters

    def __call__(self, batch: Batch, seed: int) -> NDArray[np.bool_]:
        """[trajectories] True."""
        return np.ones(len(batch.group), np.bool_)
