"""Two keys of algorithms that can weight samples by ``importance_weights.py``, and the part they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.importance_weights import Importance, TruncatedImportance
from skillpress.learn.algorithms.parameters import AlgorithmParameters


class CorrectedParameters(AlgorithmParameters):
    """The keys that such an algorithm adds to its section."""

    corrects_staleness: ClassVar[bool] = True  # ratios, or omega, compare with the weights that sampled

    importance: Importance
    """Weights for an engine whose probabilities differ from the learner's, see ``importance_weights.py``."""
    importance_cap: Annotated[float, Field(ge=1)]
    """The largest weight; larger ones are cut to it."""


@dataclass(frozen=True)
class CorrectedAlgorithm(Algorithm):
    """An algorithm that takes ratios against the learner before the step if ``importance`` asks for it."""

    parameters: CorrectedParameters

    @property
    def importance(self) -> TruncatedImportance | None:
        """The weights that ``importance`` asks for; None for ``none``."""
        level = self.parameters.importance
        return None if level == "none" else TruncatedImportance(level, self.parameters.importance_cap)
