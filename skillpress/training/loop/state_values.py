"""The values of a batch's states before the step's updates, and the targets of these values.

A value depends on a state and on k, the steps made before it. The learner computes the values in a forward
pass that algorithms without values do not make. A step at which nothing was sampled (its prompt did not fit)
has no prompt, so it has no value and no target.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Batch, Floats, Indices, SumOverRanks
from skillpress.training.algorithms.scored_tokens import ValueTargets
from skillpress.training.loop.learner import Learner
from skillpress.training.loop.samples import Samples


def with_values(batch: Batch, samples: Samples, rows: Indices, learner: Learner) -> Batch:
    """The batch with the values of its states; all ranks call this.

    Args:
        samples: the batch's decisions at which something was sampled.
        rows: [samples] the place of each in the batch's steps.
    """
    nothing = np.zeros(len(samples))
    states = ValueTargets(old=nothing, returns=nothing, weights=nothing, made=_made(batch, rows))
    values = np.zeros(len(batch.tokens))
    values[rows] = learner.values(replace(samples, targets=states))
    return replace(batch, values=values)


def targets_of(
    batch: Batch, rows: Indices, algorithm: Algorithm, add: SumOverRanks
) -> ValueTargets[Floats] | None:
    """Equally weighted targets for the states at which something was sampled; None without a value head.

    Args:
        rows: [samples] the places of these states in the batch's steps.
    """
    returns = algorithm.value_targets(batch)
    if returns is None or batch.values is None:
        return None
    states = add({"states": float(len(rows))})["states"]
    weights = np.full(len(rows), 1.0 / max(states, 1.0))
    return ValueTargets(
        old=batch.values[rows], returns=returns[rows], weights=weights, made=_made(batch, rows)
    )


def _made(batch: Batch, rows: Indices) -> Floats:
    """[samples] number of steps made before each."""
    return batch.made[rows].astype(np.float64)
