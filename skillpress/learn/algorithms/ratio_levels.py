"""The probability ratio of a turn and of a trajectory, and the clipped surrogate of each.

A unit u is a response (``turn``) or all responses of a trajectory (``trajectory``). Its ratio is the product
over its tokens (formal framework, section 1.5: the environment's probabilities cancel):

    log rho_u = sum over t in u of (logp_t - logp_t^old)
    L_u = - 1/|u| sum over t in u of w_t min(rho_u A_t, clip(rho_u, 1 - c_low, 1 + c_high) A_t)

|u| counts its tokens and w_t are the weights of ``token_weights.py``. So where all tokens of a unit have one
weight and one advantage, the unit has the weight w_u of a single token of it. This is the weight that keeps
the aggregation's meaning: since d rho = rho d log rho, the gradient at rho = 1 is that of the token level,
sum_t w_t A_t d logp_t (with the sum of its tokens' weights in its place, a unit's gradient would be |u| times
as large, and long episodes would count for the square of their length). Where weights or advantages differ
within a unit, each of its tokens gets their mean; each token's term has its own minimum.

``normalised`` is GSPO's form: s_u = exp(mean over t in u of log ratios), and
L_u = - sum over t in u of w_t min(s_u A_t, clip(s_u) A_t), whose gradient at s = 1 is the same.

The gradient of a token needs its whole unit, and the tokens of a trajectory are seldom in one pass through
the model. So what a unit's term is made of is summed up before, without gradient (``unit_sums``), and is a
constant in each pass: the loss is the unit's value plus its slope times what log rho_u changes by, and
minibatches hold whole trajectories (``training/trajectory_ratios.py``). Nothing of it depends on how a
minibatch is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

RatioLevel = Literal["token", "turn", "trajectory"]
"""Over what a ratio is taken and clipped."""

LARGEST_LOG_RATIO = 20.0
"""Log ratios are cut here before they are exponentiated. A long trajectory's can be hundreds of nats, which
float32 cannot hold: an infinite ratio would make gradients that are not numbers. Ratios that large give a
gradient only where the advantage is negative; it keeps its direction and is 5e8 times as large as at a ratio
of 1, not more. The clipping of the gradient's norm leaves its direction alone in any case."""


def unit_sums(
    log_ratios: torch.Tensor, advantages: torch.Tensor, weights: torch.Tensor, unit: torch.Tensor
) -> torch.Tensor:
    """[tokens, 4] of each token's unit: its log ratio, its tokens, the sums of w A over A > 0 and over A < 0.

    Constants, in float64, so that the order of summation leaves no trace in a loss of float32.

    Args:
        log_ratios: [tokens], as all arguments.
        unit: the unit that each token belongs to, in [0, tokens).
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
    """The loss of the tokens of one pass, which adds up over passes, and [tokens] the ratios of their units.

    A token takes an even share of its unit's value, and the whole of the gradient that is its own.

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
    slopes = ratios * (gains * (ratios <= high) + losses * (ratios >= low)) / counts
    shares = values if normalised else values / counts
    surrogate = shares.sum() + (slopes * (logprobs - logprobs.detach())).sum()
    return -surrogate.to(logprobs.dtype), ratios
