"""The values of a batch's states before the step's updates, and the targets of these values.

A value depends on a state and on k, the steps made before it. The learner computes the values in a forward
pass that algorithms without values do not make. A step at which nothing was sampled (its prompt did not fit)
has no prompt, so it has no value and no target.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skillpress.core.columns import Indices
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Batch, SumOverRanks
from skillpress.training.loop.learner import Learner


def with_values(batch: Batch, rows: Indices, learner: Learner) -> Batch:
    """The batch with the values of its states; all ranks call this.

    Args:
        rows: the steps at which something was sampled.
    """
    values = np.zeros(len(batch))
    values[rows] = learner.values(batch.cut(rows))
    return replace(batch, values=values)


def with_targets(batch: Batch, algorithm: Algorithm, add: SumOverRanks) -> Batch:
    """The batch with equally weighted targets for the states at which something was sampled; the batch itself
    without a value head."""
    returns = algorithm.value_targets(batch)
    if returns is None:
        return batch
    states = add({"states": float((batch.tokens > 0).sum())})["states"]
    return replace(batch, value_targets=returns, value_weights=np.full(len(batch), 1.0 / max(states, 1.0)))
