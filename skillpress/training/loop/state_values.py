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
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.update import UpdatePart
from skillpress.training.loop.value_head import ValueHead


class StateValues(UpdatePart):
    """The value head, and the columns that the algorithm's advantages and loss read of it."""

    def __init__(self, algorithm: Algorithm, head: ValueHead) -> None:
        self.algorithm, self.head = algorithm, head
        self.columns = dict.fromkeys(("values", "value_targets", "value_weights"), np.zeros(1))

    def judge(self, batch: Batch, rows: Indices, scoring: ScoringPasses, add: SumOverRanks) -> Batch:
        """The batch with values, targets and their weights."""
        values = np.zeros(len(batch))
        values[rows] = scoring.values(batch.cut(rows))
        return with_targets(replace(batch, values=values), self.algorithm, add)


def with_targets(batch: Batch, algorithm: Algorithm, add: SumOverRanks) -> Batch:
    """The batch with equally weighted targets for the states at which something was sampled; the batch itself
    if the algorithm has none."""
    returns = algorithm.value_targets(batch)
    if returns is None:
        return batch
    states = add({"states": float((batch.tokens > 0).sum())})["states"]
    return replace(batch, value_targets=returns, value_weights=np.full(len(batch), 1.0 / max(states, 1.0)))
