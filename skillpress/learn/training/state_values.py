"""What the states of a batch are worth before the step's updates, and what their values are to learn.

A value is that of a state and of k, the steps made before it. The learner is asked, in one more pass through
the model than algorithms without values make, without a way back. A step at which nothing was sampled (its
prompt did not fit) has no prompt, hence no value and nothing to learn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.batch import Batch, Flags, Floats, SumOverRanks
from skillpress.learn.algorithms.scored_tokens import ValueTargets
from skillpress.learn.training.learner import Learner
from skillpress.learn.training.samples import Samples


def with_values(batch: Batch, samples: Samples, learner: Learner) -> Batch:
    """The batch with the values of its states; all ranks call this.

    Args:
        samples: the decisions of the batch at which something was sampled.
    """
    asked, nothing = batch.tokens > 0, np.zeros(len(samples))
    states = ValueTargets(old=nothing, returns=nothing, weights=nothing, made=_made(batch, asked))
    values = np.zeros(len(batch.tokens))
    values[asked] = learner.values(replace(samples, targets=states))
    return replace(batch, values=values)


def targets_of(batch: Batch, algorithm: Algorithm, add: SumOverRanks) -> ValueTargets[Floats] | None:
    """What the values of the states at which something was sampled are to learn, every state weighed alike;
    None where the algorithm asks for no values."""
    returns = algorithm.value_targets(batch)
    if returns is None or batch.values is None:
        return None
    asked = batch.tokens > 0
    states = add({"states": float(asked.sum())})["states"]
    weights = np.full(asked.sum(), 1.0 / max(states, 1.0))
    return ValueTargets(
        old=batch.values[asked], returns=returns[asked], weights=weights, made=_made(batch, asked)
    )


def _made(batch: Batch, asked: Flags) -> Floats:
    """[samples] the steps made before each."""
    return batch.made[asked].astype(np.float64)
