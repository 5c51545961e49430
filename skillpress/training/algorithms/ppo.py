"""PPO with a value head (Schulman et al. 2017), whose time steps are decisions, not tokens.

A learned value of the state takes the place of the group's mean: with generalized advantage estimation
(Schulman et al. 2016, Eq. 16)

    delta_k = r_k + gamma V(X_{k+1}) - V(X_k)
    A_k     = sum over l >= 0 of (gamma lambda)^l delta_{k+l},  G_k = A_k + V(X_k)

and advantages are normalised to mean 0 and deviation 1 over all steps of the batch, of all processes. All
tokens of a response share its A_k. The loss is the clipped surrogate plus, for each step with equal weight,

    value_coefficient * max((V - G)^2, (V_old + clip(V - V_old, -value_clip, value_clip) - G)^2)

Choices:
- T is part of the task and no prompt shows k, so V sees k beside the prompt (``training/value_head.py``).
- The head's learning rate is ``value_rate`` times the policy's, because the head starts at zero and the
  policy does not. In OpenRLHF, where values have their own model, its rate is 9 to 18 times the policy's.
- Rewards are divided by the largest core reward (``reward.success``), so that V, G, value_clip and the weight
  of the two losses mean the same whatever the reward's scale; implementations divide by a running deviation.
- V is 0 after the last step, also if an episode was cut at T: the objective is success within T steps, and
  nothing is earned after them. No prompt is made for the state after them either.
- Where nothing was sampled (the prompt did not fit), V_k is defined as r_k + gamma V_{k+1}, so that delta_k =
  0. Such a step teaches nothing.
- A part of the reward that counts for its own step alone is added to its A_k and to no G_k; otherwise values
  would pass it back.
- Left out: the entropy bonus. Entropy is a metric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from skillpress.training.algorithms.algorithm import ScoredTokens
from skillpress.training.algorithms.batch import Batch, Floats, SumOverRanks
from skillpress.training.algorithms.clipped_surrogate import Clipped
from skillpress.training.algorithms.group_statistics import centred_over_ranks

if TYPE_CHECKING:
    import torch

EPSILON = 1e-8
"""Added to the deviation, so that nothing is divided by 0."""


class PPO(Clipped):
    """Proximal policy optimisation with a value of every state."""

    needs_values: ClassVar[bool] = True
    smallest_group: ClassVar[int] = 1

    discount: Annotated[float, Field(ge=0, le=1)]
    """gamma, per step."""
    gae_lambda: Annotated[float, Field(ge=0, le=1)]
    """lambda: at 1 advantages are returns minus the value, at 0 one step's error."""
    value_coefficient: Annotated[float, Field(gt=0)]
    """Weight of the values' loss."""
    value_clip: Annotated[float, Field(gt=0)]
    """The farthest that a value may usefully move from the old one, in units of the largest core reward."""
    value_rate: Annotated[float, Field(gt=0)]
    """Learning rate of the value head, times ``training.learning_rate``."""

    @property
    def head_rate(self) -> float:
        """``value_rate``."""
        return self.value_rate

    def advantages(self, batch: Batch, add: SumOverRanks) -> Floats:
        """[steps]; 0 where nothing was sampled, and if every step exceeds expectation by the same amount."""
        asked = batch.tokens > 0
        raw = np.where(asked, self._estimated(batch) + batch.own / batch.core_maximum, 0.0)
        centred, variance = centred_over_ranks(raw, asked, add)
        normalised: Floats = centred / (np.sqrt(variance) + EPSILON)
        return normalised

    def value_targets(self, batch: Batch) -> Floats:
        """[steps] G_k; 0 where nothing was sampled."""
        assert batch.values is not None
        return np.where(batch.tokens > 0, self._estimated(batch) + batch.values, 0.0)

    def describe(self, batch: Batch, add: SumOverRanks) -> dict[str, float]:
        """``value/explained_variance`` of the values before the updates; empty if all G_k are equal."""
        assert batch.values is not None
        asked = batch.tokens > 0
        explained = explained_variance(batch.values[asked], self.value_targets(batch)[asked], add)
        return {} if explained is None else {"value/explained_variance": explained}

    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The clipped surrogate plus the values' loss.

        Returns:
            The loss of some responses, and metrics: the policy's, ``value/loss`` and ``value/clip_fraction``.
        """
        old, returns, weights = tokens.old_values, tokens.value_targets, tokens.value_weights
        assert tokens.values is not None and old is not None and returns is not None and weights is not None
        loss, metrics = super().loss(tokens)
        moved = tokens.values - old
        clipped = old + moved.clamp(-self.value_clip, self.value_clip)
        errors = (tokens.values - returns).square().maximum((clipped - returns).square())
        value_loss = (weights * errors).sum()
        return loss + self.value_coefficient * value_loss, {
            **metrics,
            "value/loss": value_loss.detach(),
            "value/clip_fraction": (weights * (moved.detach().abs() > self.value_clip)).sum(),
        }

    def _estimated(self, batch: Batch) -> Floats:
        """[steps] A_k before normalisation, without parts of the step's own."""
        assert batch.values is not None
        discount, trace = self.discount, self.gae_lambda
        rewards = batch.rewards / batch.core_maximum
        found = np.zeros(len(rewards))
        last = set((np.cumsum(batch.length) - 1).tolist())
        value = advantage = 0.0
        for step in range(len(rewards) - 1, -1, -1):
            # Steps of all trajectories are in one row: nothing passes from one to the trajectory before it.
            if step in last:
                value = advantage = 0.0
            expected = rewards[step] + discount * value
            # Without a sample there is no prompt to value; this value makes delta 0.
            value = batch.values[step] if batch.tokens[step] else expected
            advantage = expected - value + discount * trace * advantage
            found[step] = advantage
        return found


def explained_variance(values: Floats, returns: Floats, add: SumOverRanks) -> float | None:
    """1 - Var[G - V] / Var[G] over all processes: 1 for values that predict every return, 0 for a constant.

    None if all returns are equal, or if there are no returns.
    """
    errors = returns - values
    total = add(
        {"states": float(len(values)), "returns": float(returns.sum()), "errors": float(errors.sum())}
    )
    states = max(total["states"], 1.0)
    squares = add(
        {
            "returns": float(((returns - total["returns"] / states) ** 2).sum()),
            "errors": float(((errors - total["errors"] / states) ** 2).sum()),
        }
    )
    # The rounding of equal returns is not a variance.
    if squares["returns"] <= 1e-12 * states:
        return None
    return 1.0 - squares["errors"] / squares["returns"]
