"""Builds an experiment's parts from its parameters, each once.

The jobs (imitation, collection, training) are described here and run by ranks. Only a rank imports torch, so
a stage that just waits for its ranks starts in a second.

It imports ``training`` and the layers below that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.params import Params, check_params, load_params

__all__ = ["Experiment", "Params", "check_params", "load_params"]

__getattr__, __dir__ = lazy_names(__name__)
