"""How a policy changes: algorithms, training, imitation, experience, reverse parsing.

It imports ``models`` and the layers below that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.training.algorithms.algorithm import Algorithm, Selection
    from skillpress.training.algorithms.batch import Batch

__all__ = ["Algorithm", "Batch", "Selection"]

__getattr__, __dir__ = lazy_names(__name__)
