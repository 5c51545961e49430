"""The probability ratio of a turn and of a trajectory, and the clipped surrogate of each.

A unit u is a response (``turn``) or all responses of a trajectory (``trajectory``). Its ratio is the product
over its tokens (formal framework, section 1.5: the environment's probabilities cancel):

    log rho_u = sum over t in u of (logp_t - logp_t^old)
    L_u = - 1/|u| sum over t in u of w_t min(rho_u A_t, clip(rho_u, 1 - c_low, 1 + c_high) A_t)

|u| counts its tokens and w_t are the weights of ``algorithm.py``. So if all tokens of a unit have one
weight and one advantage, the unit has the weight w_u of a single token. This weight keeps the aggregation's
meaning: since d rho = rho d log rho, the gradient at rho = 1 is that of the token level, sum_t w_t A_t d
logp_t. With the sum of its tokens' weights instead, a unit's gradient would be |u| times as large, and long
episodes would count with the square of their length. If weights or advantages differ within a unit, each of
its tokens gets their mean; each token's term has its own minimum.

``normalised`` is GSPO's form: s_u = exp(mean over t in u of log ratios), and
L_u = - sum over t in u of w_t min(s_u A_t, clip(s_u) A_t), whose gradient at s = 1 is the same.

The gradient of a token needs its whole unit, and the tokens of a trajectory may be spread over several passes
through the model. So the sums of a unit are computed before the loss, without gradient (``unit_sums``), and
are constants in each pass. The loss is the unit's value plus its slope times the change of log rho_u, and
minibatches hold whole trajectories (``training/own_scores.py``). The result does not depend on how a
minibatch is split into passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

RatioLevel = Literal["token", "turn", "trajectory"]
"""Unit over which a ratio is taken and clipped."""

LARGEST_LOG_RATIO = 20.0
"""Log ratios are cut here before they are exponentiated. A long trajectory's log ratio can be hundreds of
nats, and float32 cannot hold its exponential: an infinite ratio would make the gradient NaN. Ratios that
large give a gradient only where the advantage is negative. The cut keeps its direction and limits it to 5e8
times its size at a ratio of 1. Clipping the gradient's norm never changes its direction."""


def unit_sums(
    log_ratios: torch.Tensor, advantages: torch.Tensor, weights: torch.Tensor, unit: torch.Tensor
) -> torch.Tensor:
    """[tokens, 4] sums of each token's unit: its log ratio, its tokens, the sums of w A over A > 0 and over A
    < 0.

    They are constants, in float64, so that the order of summation does not change a float32 loss.

    Args:
        log_ratios: [tokens], like all arguments.
        unit: the number of each token's unit, in [0, tokens).
    """
    exact = log_ratios.detach().double()
    weighted = weights.double() * advantages.double()
    columns = exact.new_ones((len(unit), 4))
    columns[:, 0] = exact
    columns[:, 2] = weighted.clamp(min=0)
    columns[:, 3] = weighted.clamp(max=0)
    totals = exact.new_zeros((len(unit), 4)).index_add(0, unit, columns)
    return totals[unit]


def clipped_units(
    logprobs: torch.Tensor, sums: torch.Tensor, low: float, high: float, normalised: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of the tokens of one pass, which can be summed over passes, and [tokens] the ratios of their
    units.

    Each token has an equal share of its unit's value, and its own whole gradient.

    Args:
        logprobs: [tokens], with the gradient.
        sums: [tokens, 4], see :func:`unit_sums`.
        low: the least ratio that is not clipped, 1 - c_low.
        high: the largest, 1 + c_high.
        normalised: take the geometric mean over the unit's tokens, as GSPO does, in place of the product.
    """
    log_ratios, counts, gains, losses = sums.unbind(1)
    if normalised:
        log_ratios = log_ratios / counts
    ratios = log_ratios.clamp(max=LARGEST_LOG_RATIO).exp()
    # min(rho A, clip(rho) A) is min(rho, high) A for A > 0 and max(rho, low) A for A < 0.
    values = (ratios.clamp(max=high) * gains + ratios.clamp(min=low) * losses) / counts
    # d rho = rho d log rho, and beyond its clip a part has no slope.
    slopes = ratios * (gains * (ratios <= high) + losses * (ratios >= low)) / counts
    shares = values if normalised else values / counts
    # The difference is 0 and has the gradient of log pi, so the value is exact and the slope is the unit's.
    surrogate = shares.sum() + (slopes * (logprobs - logprobs.detach())).sum()
    return -surrogate.to(logprobs.dtype), ratios
