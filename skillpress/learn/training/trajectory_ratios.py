"""Ratios over whole trajectories need sums over all tokens of each trajectory before an update.

The tokens of a trajectory are spread over several passes through the model, and the gradient of each token
depends on all of them (``algorithms/ratio_levels.py``). So the samples of an update are scored first, without
gradient, with the same weights and in the same passes as in the update, and each sample carries its
trajectory's sums. A rank holds whole trajectories (``minibatches.py``), so the sums need no exchange.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from skillpress.core.logprobs import Logprobs
from skillpress.learn.algorithms.ratio_levels import unit_sums
from skillpress.learn.training.samples import Samples


def with_trajectory_sums(samples: Samples, logprobs: Logprobs) -> Samples:
    """The samples with the sums of their trajectories.

    Args:
        samples: whole trajectories; ``trajectory`` is set.
        logprobs: [tokens] under the current weights.
    """
    assert samples.trajectory is not None
    if not len(samples):
        return replace(samples, trajectory_sums=np.zeros((0, 4)))
    lengths = samples.lengths
    old = samples.logprobs if samples.proximal_logprobs is None else samples.proximal_logprobs
    _, unit = np.unique(samples.trajectory, return_inverse=True)
    sums = unit_sums(
        torch.tensor(logprobs - old),
        torch.tensor(samples.advantages),
        torch.tensor(np.repeat(samples.weights, lengths)),
        torch.tensor(np.repeat(unit, lengths)),
    )
    return replace(samples, trajectory_sums=sums.numpy()[np.cumsum(lengths) - lengths])
