"""Dr. GRPO: GRPO without its two divisions (Liu et al. 2025, arXiv 2503.20783, section 3.2).

    A_k = score_k - mean(group)
    w_t = 1 / (samples of the step * longest response)

GRPO divides advantages by the group's deviation, which gives more weight to tasks that nearly always or
nearly never succeed. It divides the tokens of a response by its length, which makes a long failure cheap. Dr.
GRPO does neither. In place of the length it has a constant, as in the authors' code: the most tokens that a
response may have (``sampling.max_new_tokens``), whatever the sampled lengths are. So the weights of a step do
not sum to 1 but to the mean length of its responses divided by the longest allowed length. When responses
grow, so does the gradient.

A sample is one decision, conditioned on its own state, where the paper has whole answers to a question; each
trajectory of the group counts once in the mean. The loss is the clipped surrogate.
"""

from __future__ import annotations

import numpy as np

from skillpress.training.algorithms.batch import Batch, Floats, Indices, SumOverRanks
from skillpress.training.algorithms.clipped_surrogate import Surrogate
from skillpress.training.algorithms.group_statistics import centred


class DrGRPO(Surrogate):
    """GRPO done right."""

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 in a group of equal scores, or of equal trajectories."""
        return centred(batch, "per_trajectory")

    def token_weights(self, lengths: Indices, tokens: float, sequences: float, longest: int) -> Floats:
        """[samples] the same constant for every token."""
        return np.full(len(lengths), 1.0 / (max(sequences, 1.0) * longest))
