"""The input of a loss: the response tokens of one pass through the model, whole responses only.

If an algorithm asks for values, it also has the value of the state in which each response was sampled, and
that value's target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array")
Other = TypeVar("Other")


@dataclass(frozen=True)
class ValueTargets(Generic[Array]):
    """Inputs and targets of the values of some states; every field is [states], an array or a tensor."""

    old: Array
    """The values before the updates of the step."""
    returns: Array
    """The values that they should have had."""
    weights: Array
    """Weight of each state in the loss of its update; a whole update's sum to 1 over all processes."""
    made: Array
    """k, the steps that the episode had made before each."""

    def map(self, change: Callable[[Array], Other]) -> ValueTargets[Other]:
        """The targets with ``change`` applied to each of the four fields."""
        return ValueTargets(*(change(getattr(self, each.name)) for each in fields(self)))

    @staticmethod
    def concatenate(parts: Sequence[ValueTargets[NDArray[np.float64]]]) -> ValueTargets[NDArray[np.float64]]:
        """The targets of all parts, in order."""
        columns = ([getattr(part, each.name) for part in parts] for each in fields(ValueTargets))
        return ValueTargets(*map(np.concatenate, columns))


@dataclass(frozen=True)
class ScoredTokens:
    """Response tokens in order, response after response; a tensor whose shape is not given is [tokens]."""

    logprobs: torch.Tensor
    """log pi(v_t) in nats under the current weights; carries the gradient."""
    old_logprobs: torch.Tensor
    """Denominators of the ratios: the engine's log-probabilities, or the learner's before the step."""
    advantages: torch.Tensor
    weights: torch.Tensor
    """w_t, see ``token_weights.py``."""
    response: torch.Tensor
    """Number of each token's response, counted from 0 within this pass."""
    reference_logprobs: torch.Tensor | None = None
    """Log-probabilities of the start policy, NaN where ``kl_weights`` is 0; None if there is no KL term."""
    kl_weights: torch.Tensor | None = None
    """Weights of the KL term: w_t over the probability that the start policy scores the token, 0 where it has
    not; None if it has scored every token, and the weights are w_t."""
    values: torch.Tensor | None = None
    """[responses] V of each one's state under the current weights, with gradient; None without a head."""
    targets: ValueTargets[torch.Tensor] | None = None
    """The targets of these values; None where there are no values."""
    trajectory_sums: torch.Tensor | None = None
    """[tokens, 4] sums over each token's trajectory (``ratio_levels.py``); None if no loss needs them."""
