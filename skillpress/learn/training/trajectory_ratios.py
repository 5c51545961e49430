"""What a ratio over whole trajectories needs before an update: sums over all tokens of each.

The tokens of a trajectory are spread over several passes through the model, and the gradient of each of
them depends on all (``algorithms/ratio_levels.py``). So the samples of an update are scored first, without
gradient, under the very weights and in the very passes of the update, and each sample carries its
trajectory's sums. A rank holds whole trajectories (``minibatches.py``), so the sums need no exchange.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from skillpress.learn.algorithms.ratio_levels import unit_sums
from skillpress.learn.training.samples import PerToken, Samples, by_token


def with_trajectory_sums(samples: Samples, logprobs: PerToken) -> Samples:
    """The samples with the sums of their trajectories.

    Args:
        samples: whole trajectories, with ``trajectory``.
        logprobs: per sample its tokens' log-probabilities under the weights as they are now.
    """
    assert samples.trajectory is not None
    if not len(samples):
        return replace(samples, trajectory_sums=np.zeros((0, 4)))
    steps = samples.steps
    lengths = np.array([len(step.response_ids) for step in steps])
    old = samples.proximal_logprobs or tuple(np.array(step.logprobs, np.float32) for step in steps)
    _, unit = np.unique(samples.trajectory, return_inverse=True)
    sums = unit_sums(
        torch.tensor(np.concatenate(logprobs) - np.concatenate(old)),
        torch.tensor(by_token(samples.advantages, lengths)),
        torch.tensor(by_token(samples.weights, lengths)),
        torch.tensor(np.repeat(unit, lengths)),
    )
    return replace(samples, trajectory_sums=sums.numpy()[np.cumsum(lengths) - lengths])
