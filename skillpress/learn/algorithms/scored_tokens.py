"""What a loss is given: the response tokens of one pass through the model, whole responses only.

Where an algorithm asks for values, the value of the state that each response was sampled in stands beside
them, with what it is to learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array")
Other = TypeVar("Other")


@dataclass(frozen=True)
class ValueTargets(Generic[Array]):
    """What the values of some states see beside the states, and are to learn; each is [states], NumPy's or
    torch's."""

    old: Array
    """Their values before the updates of the step."""
    returns: Array
    """What they should have been."""
    weights: Array
    """Of each in the loss of its update; those of a whole update sum to 1, over all processes."""
    made: Array
    """k, the steps that the episode had made before each."""

    def map(self, change: Callable[[Array], Other]) -> ValueTargets[Other]:
        """The same with each of the four changed alike."""
        return ValueTargets(
            old=change(self.old),
            returns=change(self.returns),
            weights=change(self.weights),
            made=change(self.made),
        )

    @staticmethod
    def concatenate(parts: Sequence[ValueTargets[NDArray[np.float64]]]) -> ValueTargets[NDArray[np.float64]]:
        """Those of all parts, in order."""
        return ValueTargets(
            old=np.concatenate([part.old for part in parts]),
            returns=np.concatenate([part.returns for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            made=np.concatenate([part.made for part in parts]),
        )


@dataclass(frozen=True)
class ScoredTokens:
    """Response tokens in their order, response after response; a tensor without a shape is [tokens]."""

    logprobs: torch.Tensor
    """log pi(v_t) in nats under the weights as they are now; carries the gradient."""
    old_logprobs: torch.Tensor
    """What ratios are taken against: the engine's, or the learner's own before the updates of the step."""
    advantages: torch.Tensor
    weights: torch.Tensor
    """w_t, see ``token_weights.py``."""
    response: torch.Tensor
    """The response that each token belongs to, counted from 0 within this pass."""
    reference_logprobs: torch.Tensor | None = None
    """Those of the start policy; None where there is no KL term."""
    values: torch.Tensor | None = None
    """[responses] V of the state that each was sampled in, under the weights as they are now; carries the
    gradient. None where the algorithm asks for no values."""
    targets: ValueTargets[torch.Tensor] | None = None
    """What these values are to learn; None where there are none."""
    trajectory_sums: torch.Tensor | None = None
    """[tokens, 4] of the whole trajectory of each token, see ``ratio_levels.py``; None where the algorithm
    does not ask for whole trajectories."""
