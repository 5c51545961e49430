"""How a policy changes: algorithms, training, imitation, experience, reverse parsing.

It imports ``models`` and the wings below that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.learn.algorithms.algorithm import Algorithm, PolicyLoss, Selection
    from skillpress.learn.algorithms.batch import Batch
    from skillpress.learn.algorithms.parameters import AlgorithmParameters

__all__ = ["Algorithm", "AlgorithmParameters", "Batch", "PolicyLoss", "Selection"]

_MODULES = {
    "Algorithm": "algorithms.algorithm",
    "AlgorithmParameters": "algorithms.parameters",
    "Batch": "algorithms.batch",
    "PolicyLoss": "algorithms.algorithm",
    "Selection": "algorithms.algorithm",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
