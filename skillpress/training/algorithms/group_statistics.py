"""The scores of a task's rollouts, and the baselines they are compared with.

Two ways to count are in use and give different gradients when episodes differ in length: every
trajectory counts once (GiGPO's Eq. 3), or every step does (verl-agent), where long failures dominate.
A step's score is its trajectory's return plus the parts that count for that step alone. So

    per_step        mean and deviation are over the group's steps, each weighing 1
    per_trajectory  they are over the group's steps, each weighing 1 / (steps of its trajectory)

If no step has parts of its own, all steps of a trajectory share one score. The deviation is computed from the
same scores that it divides, so their weighted root mean square is at most 1 afterwards.

A group compares trajectories. If all of them have the same scores, step by step, there is nothing to compare,
and every advantage is 0 even if the steps of each differ. The same holds for a trajectory that is alone.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skillpress.training.algorithms.batch import Batch, Flags, Floats, SumOverRanks

EPSILON = 1e-6
"""Added to the deviation, so that nothing is divided by 0."""

Weighting = Literal["per_trajectory", "per_step"]


def trajectory_scores(batch: Batch) -> Floats:
    """[trajectories] the mean score of each trajectory's steps."""
    return batch.returns + _own_means(batch)


def group_means(batch: Batch, weighting: Weighting) -> Floats:
    """[groups] the mean score."""
    if weighting == "per_step":
        return np.bincount(batch.step_group, batch.scores) / np.bincount(batch.step_group)
    return np.bincount(batch.group, trajectory_scores(batch)) / np.bincount(batch.group)


def group_deviations(batch: Batch, weighting: Weighting) -> Floats:
    """[groups] the sample standard deviation of the steps' scores; exactly 0 among equal scores.

    The sample consists of steps or of trajectories, as the weighting says. A trajectory's squared deviation
    is the mean of its steps' squares: the square of its mean score's deviation plus the variance of its steps
    around that mean.
    """
    means = group_means(batch, weighting)
    if weighting == "per_step":
        groups, squares = batch.step_group, difference(batch.scores, means[batch.step_group]) ** 2
    else:
        groups = batch.group
        # Without the scatter the deviation would be 0 where trajectories are alike but their steps are not.
        scatter = difference(batch.own, _own_means(batch)[batch.trajectory]) ** 2
        squares = difference(trajectory_scores(batch), means[groups]) ** 2 + _mean_of_steps(batch, scatter)
    variances = np.bincount(groups, squares) / np.maximum(np.bincount(groups) - 1, 1)
    deviations: Floats = np.sqrt(variances)
    return deviations


def compared(batch: Batch, baselines: Floats) -> Floats:
    """[steps] score_k - baseline_k; all 0 in a group of equal trajectories, so also in a group of one."""
    found = difference(batch.scores, baselines)
    found[alike(batch)[batch.step_group]] = 0.0
    return found


def centred(batch: Batch, weighting: Weighting) -> Floats:
    """[steps] score_k - mean(group)."""
    return compared(batch, group_means(batch, weighting)[batch.step_group])


def standardised(batch: Batch, weighting: Weighting) -> Floats:
    """[steps] (score_k - mean(group)) / (std(group) + eps)."""
    deviations = group_deviations(batch, weighting)[batch.step_group]
    return centred(batch, weighting) / (deviations + EPSILON)


def difference(scores: Floats, baselines: Floats) -> Floats:
    """``scores - baselines``, exactly 0 where the difference is only the rounding of a mean.

    A group of equal scores teaches nothing.
    """
    left: Floats = scores - baselines
    # The mean of equal scores may differ from them in the last bits, which the division by a deviation near 0
    # would make as large as any other advantage.
    left[np.abs(left) <= 1e-12 * np.maximum(1.0, np.abs(scores))] = 0.0
    return left


def centred_over_ranks(values: Floats, counted: Flags, add: SumOverRanks) -> tuple[Floats, float]:
    """([steps] values less their mean, their variance) over the ``counted`` steps of all processes; elsewhere
    values are 0."""
    total = add({"steps": float(counted.sum()), "values": float(values.sum())})
    steps = max(total["steps"], 1.0)
    # The squares are summed after the mean is known: E[x^2] - E[x]^2 would lose digits.
    centred = difference(values, np.full(len(values), total["values"] / steps))
    centred[~counted] = 0.0
    return centred, add({"squares": float((centred**2).sum())})["squares"] / steps


def alike(batch: Batch) -> NDArray[np.bool_]:
    """[groups] whether the trajectories of a group have the same scores, step by step."""
    scores = np.split(batch.scores, np.cumsum(batch.length))[:-1]
    different = {
        (group, tuple(steps.tolist())) for group, steps in zip(batch.group.tolist(), scores, strict=True)
    }
    alike: NDArray[np.bool_] = np.bincount(np.array([group for group, _ in different], np.int64)) == 1
    return alike


def _own_means(batch: Batch) -> Floats:
    """[trajectories] the mean over its steps of the parts that count for one step alone."""
    return _mean_of_steps(batch, batch.own)


def _mean_of_steps(batch: Batch, values: Floats) -> Floats:
    """[trajectories] the mean of [steps] values over the steps of each."""
    sums = np.bincount(batch.trajectory, values, minlength=len(batch.group))
    means: Floats = sums / np.maximum(batch.length, 1)
    return means
