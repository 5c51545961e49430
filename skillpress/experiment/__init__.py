"""Builds an experiment's parts from its parameters, each once.

The jobs (imitation, collection, training) are described here and run by ranks. Only a rank imports torch, so
a stage that just waits for its ranks starts in a second.

It imports ``learn`` and the wings below that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.params import Params, check_params, load_params

__all__ = ["Experiment", "Params", "check_params", "load_params"]

_MODULES = {
    "Experiment": "experiment",
    "Params": "params",
    "check_params": "params",
    "load_params": "params",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
