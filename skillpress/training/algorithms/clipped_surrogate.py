"""The clipped surrogate with a KL to the start policy, as sums that any batch split can add up.

    L = - sum_t w_t min(rho_t A_t, clip(rho_t, 1 - c_low, 1 + c_high) A_t) + beta sum_t w_t k3_t
    rho_t = exp(logp_t - logp_t^old)

With ``ratio`` turn or trajectory the first sum is over responses or trajectories u, each with the ratio of
all its tokens (``ratio_levels.py``). If the tokens of u have one weight w_u and one advantage A_u, it is

    - sum_u w_u min(rho_u A_u, clip(rho_u, 1 - c_low, 1 + c_high) A_u),  rho_u = product over t in u of rho_t

logp^old is the engine's log-probability of the token it sampled. Where ``importance`` asks for weights that
correct the difference, it is the learner's log-probability before the updates of the step. These weights are
constants at every level: each multiplies the advantage of its token, and rho is then the ratio to the
learner's own policy before the step. They are products over one response at most. Over a trajectory they
would correct the sampling of earlier turns too, with a variance that grows with every turn. Without the
weights an engine's rounding adds up over all tokens of a trajectory; with them ratios are 1 at the first
update of a step. The weights w_t are those of ``algorithm.py``, the KL estimator k3 is that of ``kl.py``.

With a ``dual_clip`` c the term of a token with A < 0 is max(min(...), c A): a ratio above c gives no
gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from skillpress.training.algorithms.algorithm import Aggregation, ScoredTokens, token_weights
from skillpress.training.algorithms.batch import Floats, Indices
from skillpress.training.algorithms.importance_weights import Corrected
from skillpress.training.algorithms.kl import outside, with_kl
from skillpress.training.algorithms.ratio_levels import RatioLevel, clipped_units, unit_sums

if TYPE_CHECKING:
    import torch


class Surrogate(Corrected):
    """An algorithm with PPO's pessimistic surrogate (Schulman et al. 2017) and GRPO's KL term. Its file
    defines advantages, and weights unless all tokens of a step weigh the same."""

    ratio: RatioLevel
    """Unit of probability ratios: token, turn or trajectory."""
    clip_low: Annotated[float, Field(gt=0, lt=1)]
    """Ratios below 1 - clip_low give no gradient where the advantage is negative."""
    clip_high: Annotated[float, Field(gt=0)]
    """Ratios above 1 + clip_high give no gradient where the advantage is positive."""
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    """Ratios above dual_clip give no gradient where the advantage is negative; null sets no bound."""

    @model_validator(mode="after")
    def _dual_clip_of_tokens(self) -> Self:
        if self.dual_clip is None:
            return self
        if self.ratio != "token":
            raise ValueError(
                f"dual_clip is {self.dual_clip:g} and ratio {self.ratio!r}: the dual clip bounds the ratios "
                "of tokens; use ratio token, or dual_clip null"
            )
        if self.dual_clip <= 1 + self.clip_high:
            raise ValueError(
                f"dual_clip is {self.dual_clip:g}: must be above 1 + clip_high, "
                f"which is {1 + self.clip_high:g}"
            )
        return self

    def loss(self, tokens: ScoredTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of some response tokens.

        Returns:
            The weighted sum over tokens (a scalar to minimise), and metrics that are weighted sums too:
            ``approximate_kl`` to the sampling policy, per token; ``clip_fraction``, the share of tokens whose
            ratio, or whose unit's ratio, is outside the clip; ``reference_kl``.
        """
        weights, advantages = tokens.weights, tokens.advantages
        log_ratio = tokens.logprobs - tokens.old_logprobs
        ratio = log_ratio.exp()
        low, high = 1 - self.clip_low, 1 + self.clip_high
        if self.ratio == "token":
            clipped = ratio.clamp(low, high)
            terms = (ratio * advantages).minimum(clipped * advantages)
            if self.dual_clip is not None:
                # For A > 0 this bound is 0, which no term is below.
                terms = terms.maximum(self.dual_clip * advantages.clamp(max=0))
            loss = -(weights * terms).sum()
            seen = ratio.detach()
        else:
            loss, seen = clipped_units(tokens.logprobs, self._sums(tokens, log_ratio), low, high)
        return with_kl(loss, outside(tokens, seen, low, high), tokens, self.kl_coefficient)

    def _sums(self, tokens: ScoredTokens, log_ratio: torch.Tensor) -> torch.Tensor:
        """[tokens, 4] the sums of each token's turn or trajectory."""
        if self.ratio == "turn":
            return unit_sums(log_ratio, tokens.advantages, tokens.weights, tokens.response)
        if tokens.trajectory_sums is None:
            raise ValueError(
                "trajectory_sums is None; ratios over trajectories need the sums of whole trajectories"
            )
        return tokens.trajectory_sums

    @property
    def whole_trajectories(self) -> bool:
        """Whether ``ratio`` is trajectory."""
        return self.ratio == "trajectory"


class Clipped(Surrogate):
    """A surrogate whose section chooses the weights; its file defines advantages."""

    aggregation: Aggregation
    """How token losses are averaged over a step: token_mean or sequence_mean."""

    def token_weights(self, lengths: Indices, tokens: float, sequences: float, longest: int) -> Floats:
        """[samples] the weights that ``aggregation`` asks for."""
        return token_weights(lengths, self.aggregation, tokens, sequences)
