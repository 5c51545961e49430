"""Inputs of a loss that are the learner's own scores before an update, taken from the update's own passes.

A pass computes log-probabilities under the weights before the update, and only then its loss. So whatever the
loss needs of these weights is there, detached, and needs no pass of its own:

    proximal policy    in the first update of a step it is the current policy, so log pi^prox_t is log pi_t
                       without gradient: the ratio is 1 and has the gradient of log pi_t. The importance
                       weights need no more than the tokens of the same response, which one pass has
    trajectories       the sums of a trajectory's log ratios (``algorithms/ratio_levels.py``), in every
                       update, if all its tokens are in the pass. Steps whose prompts extend one another are
                       one sequence, so with growing contexts this is always so

The rest is scored before the update: proximal log-probabilities of a step's later updates, since the weights
change in between, and trajectories whose tokens are spread over several passes. NaN marks what a pass fills
in. A rank holds whole trajectories (``minibatches.py``), so nothing is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from skillpress.core.columns import members
from skillpress.core.logprobs import Logprobs
from skillpress.training.algorithms.batch import Batch, Indices
from skillpress.training.algorithms.importance_weights import TruncatedImportance
from skillpress.training.algorithms.ratio_levels import unit_sums


def completed(samples: Batch, logprobs: Logprobs, importance: TruncatedImportance | None) -> Batch:
    """The samples of a pass with the inputs of their loss that they do not have yet.

    Args:
        logprobs: [tokens] under the current weights.
        importance: the weights of a step's first update, whose proximal policy is the current one; None in
            other updates, and if the algorithm asks for none.
    """
    if importance is not None:
        samples = with_importance(samples, logprobs, importance)
    return samples if samples.trajectory_sums is None else _with_trajectory_sums(samples, logprobs)


def prepared(
    samples: Batch,
    rows: Sequence[Indices],
    score: Callable[[Batch], Logprobs],
    importance: TruncatedImportance | None,
) -> Batch:
    """The samples of an update over whole trajectories, with the scores of those trajectories that no pass
    has as a whole; all ranks call this, since ``score`` needs all.

    Args:
        rows: the rows of each pass.
        score: returns [tokens] log-probabilities under the current weights.
    """
    split = split_trajectories(samples.trajectory, rows)
    samples = replace(samples, trajectory_sums=np.full((len(samples), 4), np.nan))
    some = samples.cut(split)
    some = completed(some, score(some), importance)
    sums = np.full((len(samples), 4), np.nan)
    sums[split] = some.trajectory_sums
    samples = replace(samples, trajectory_sums=sums)
    if importance is None:
        return samples
    proximal, advantages = np.full_like(samples.logprobs, np.nan), samples.advantages.copy()
    tokens = members(split, samples.tokens)
    proximal[tokens], advantages[tokens] = some.proximal_logprobs, some.advantages
    return replace(samples, proximal_logprobs=proximal, advantages=advantages)


def split_trajectories(trajectory: Indices, rows: Sequence[Indices]) -> Indices:
    """The samples whose trajectory is spread over several passes.

    Args:
        trajectory: [samples] the number of each sample's trajectory.
        rows: the rows of each pass; every sample is in one.
    """
    place = np.zeros(len(trajectory), np.int64)
    for index, some in enumerate(rows):
        place[some] = index
    _, unit = np.unique(trajectory, return_inverse=True)
    count = int(unit.max(initial=-1)) + 1
    first, last = np.full(count, len(rows)), np.full(count, -1)
    np.minimum.at(first, unit, place)
    np.maximum.at(last, unit, place)
    return np.flatnonzero(first[unit] != last[unit])


def with_importance(samples: Batch, logprobs: Logprobs, importance: TruncatedImportance) -> Batch:
    """The samples with proximal log-probabilities and weighted advantages, where they have none yet.

    Args:
        logprobs: [tokens] under the proximal policy.
    """
    known = np.full_like(logprobs, np.nan) if samples.proximal_logprobs is None else samples.proximal_logprobs
    missing = np.isnan(known)
    # A sequence's weight is the exponential of a sum, so it is computed in float64.
    weights = importance(logprobs.astype(np.float64) - samples.logprobs, samples.tokens)
    return replace(
        samples,
        proximal_logprobs=np.where(missing, logprobs, known),
        advantages=np.where(missing, samples.advantages * weights, samples.advantages),
    )


def _with_trajectory_sums(samples: Batch, logprobs: Logprobs) -> Batch:
    """The samples with the sums of their trajectories, where they have none yet: these trajectories must be
    whole.

    Args:
        logprobs: [tokens] under the current weights.
    """
    known, lengths = samples.trajectory_sums, samples.tokens
    if not len(samples) or known is None:
        return samples
    old = samples.logprobs if samples.proximal_logprobs is None else samples.proximal_logprobs
    _, unit = np.unique(samples.trajectory, return_inverse=True)
    sums = unit_sums(
        torch.tensor(logprobs - old),
        torch.tensor(samples.advantages),
        torch.tensor(np.repeat(samples.weights, lengths)),
        torch.tensor(np.repeat(unit, lengths)),
    ).numpy()[np.cumsum(lengths) - lengths]
    return replace(samples, trajectory_sums=np.where(np.isnan(known), sums, known))
