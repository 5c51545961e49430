"""How many optimizer updates a batch of step samples is cut into.

Either a number, so that updates grow with the batch, or the size of one, so that their number does: as
episodes grow shorter, a batch of as many episodes holds fewer samples and takes fewer updates.
verl-agent gives the size, in samples of all processes together.
"""

from __future__ import annotations


def updates_of_batch(minibatches: int, minibatch_size: int, samples: int) -> int:
    """The number of equal parts, at least 1.

    Args:
        minibatches: the number, where no size is given.
        minibatch_size: samples in a part at most; 0 is no limit.
        samples: of all processes, those without an advantage included.
    """
    return -(-samples // minibatch_size) or 1 if minibatch_size else minibatches
