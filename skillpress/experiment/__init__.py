"""From an experiment's parameters to its parts, built once and handed over.

The jobs (imitation, collection, training) are described here and run by ranks; what a rank needs of
torch is imported in the rank, so that a stage that only waits for its ranks starts in a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.experiment.experiment import Experiment

__all__ = ["Experiment"]


def __getattr__(name: str) -> Any:
    if name != "Experiment":
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    from skillpress.experiment.experiment import Experiment

    return Experiment
