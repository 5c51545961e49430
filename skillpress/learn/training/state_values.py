"""What the states of a batch are worth before the step's updates, and what their values are to learn.

A value is that of a state and of k, the steps made before it. The learner is asked, in one more pass through
the model than algorithms without values make, without a way back. A step at which nothing was sampled (its
prompt did not fit) has no prompt, hence no value and nothing to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skillpress.core.trajectory import Trajectory
from skillpress.learn.algorithms.algorithm import Algorithm
from skillpress.learn.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.learn.algorithms.scored_tokens import ValueTargets
from skillpress.learn.training.learner import Learner
from skillpress.learn.training.samples import Samples


def with_values(batch: Batch, trajectories: Sequence[Trajectory], learner: Learner) -> Batch:
    """The batch of these trajectories with the values of its states; all ranks call this."""
    asked = batch.tokens > 0
    steps = [step for trajectory in trajectories for step in trajectory.decisions if step.response_ids]
    nothing = np.zeros(len(steps))
    states = ValueTargets(old=nothing, returns=nothing, weights=nothing, made=_made(trajectories)[asked])
    values = np.zeros(len(batch.tokens))
    values[asked] = learner.values(
        Samples(steps=tuple(steps), advantages=nothing, weights=nothing, targets=states)
    )
    return replace(batch, values=values)


def _made(trajectories: Sequence[Trajectory]) -> Floats:
    """[decisions] the steps made before each."""
    return np.array([number for trajectory in trajectories for number in trajectory.steps_before], np.float64)


def targets_of(
    batch: Batch, trajectories: Sequence[Trajectory], algorithm: Algorithm, add: SumOverRanks
) -> ValueTargets[Floats] | None:
    """What the values of the states at which something was sampled are to learn, every state weighed alike;
    None where the algorithm asks for no values."""
    returns = algorithm.value_targets(batch)
    if returns is None or batch.values is None:
        return None
    asked = batch.tokens > 0
    states = add({"states": float(asked.sum())})["states"]
    weights = np.full(asked.sum(), 1.0 / max(states, 1.0))
    return ValueTargets(
        old=batch.values[asked], returns=returns[asked], weights=weights, made=_made(trajectories)[asked]
    )
