"""How token losses are averaged over a step, as a weight per token.

Weights are set for the whole step, before it is split into minibatches, passes and processes and before
samples without advantage are removed. So neither changes the gradient.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Aggregation = Literal["token_mean", "sequence_mean"]
"""``token_mean`` gives every token the same weight; ``sequence_mean`` every sample, whatever its length."""


def token_weights(
    lengths: NDArray[np.int64], aggregation: Aggregation, tokens: float, sequences: float
) -> NDArray[np.float64]:
    """[samples] weight w of each token of a sample, such that the weights of a whole step sum to 1.

    Args:
        lengths: [samples] response tokens per sample, at least 1 each.
        tokens: response tokens of the whole step, over all ranks, skipped samples included.
        sequences: samples of the whole step, likewise.
    """
    if not len(lengths):
        return np.zeros(0)
    if aggregation == "token_mean":
        return np.full(len(lengths), 1.0 / tokens)
    return 1.0 / (lengths.astype(np.float64) * sequences)
