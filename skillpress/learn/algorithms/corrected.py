"""What algorithms share that can weigh samples by ``importance_weights.py``: two keys and what they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.importance_weights import Importance, TruncatedImportance
from skillpress.learn.algorithms.parameters import AlgorithmParameters


class CorrectedParameters(AlgorithmParameters):
    """What such an algorithm adds to its section."""

    corrects_staleness: ClassVar[bool] = True  # ratios are against the weights that sampled, or omega is

    importance: Importance
    """Weights for an engine whose probabilities are not the learner's, see ``importance_weights.py``."""
    importance_cap: Annotated[float, Field(ge=1)]
    """What such a weight is cut at."""


@dataclass(frozen=True)
class CorrectedAlgorithm(Algorithm):
    """An algorithm whose ratios are taken against the learner before the step, where ``importance`` asks."""

    parameters: CorrectedParameters

    @property
    def importance(self) -> TruncatedImportance | None:
        """As ``importance`` says."""
        level = self.parameters.importance
        return None if level == "none" else TruncatedImportance(level, self.parameters.importance_cap)
