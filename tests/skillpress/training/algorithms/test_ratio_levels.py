"""Ratios of turns and trajectories compared with the surrogate's definition, and their laws."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.ratio_levels import clipped_units, unit_sums
from tests.support.training.batches import clipped
from tests.support.training.scored import scored

LOW, HIGH = 0.8, 1.3
TRAJECTORIES = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4)
"""The lengths of the responses of each trajectory."""


def by_definition(
    logprobs: torch.Tensor,
    old: torch.Tensor,
    advantages: torch.Tensor,
    weights: torch.Tensor,
    units: list[list[int]],
    normalised: bool = False,
) -> torch.Tensor:
    """The loss, unit by unit and token by token, which autograd differentiates."""
    total = torch.zeros((), dtype=logprobs.dtype)
    for unit in units:
        ratio = torch.ones((), dtype=logprobs.dtype)
        for token in unit:
            ratio = ratio * torch.exp(logprobs[token] - old[token])
        ratio = ratio ** (1 / len(unit)) if normalised else ratio
        term = sum(
            weights[token]
            * torch.minimum(ratio * advantages[token], ratio.clamp(LOW, HIGH) * advantages[token])
            for token in unit
        )
        total = total - (term if normalised else term / len(unit))
    return total


def drawn(tokens: int, seed: int) -> list[torch.Tensor]:
    """[tokens] log-probabilities, old ones that differ by a fifth, advantages and weights."""
    random = torch.Generator().manual_seed(seed)
    logprobs = -torch.rand(tokens, generator=random, dtype=torch.float64) - 0.5
    old = logprobs + 0.2 * torch.randn(tokens, generator=random, dtype=torch.float64)
    advantages = torch.randn(tokens, generator=random, dtype=torch.float64)
    return [logprobs, old, advantages, torch.rand(tokens, generator=random, dtype=torch.float64)]


def spans(lengths: list[int]) -> list[list[int]]:
    """The tokens of responses of these lengths, one response after another."""
    ends = torch.tensor(lengths).cumsum(0).tolist()
    return [list(range(end - length, end)) for length, end in zip(lengths, ends, strict=True)]


def owners(units: list[list[int]]) -> torch.Tensor:
    return torch.tensor([number for number, unit in enumerate(units) for _ in unit])


def units_of(trajectories: list[list[int]]) -> list[list[int]]:
    """The tokens of each trajectory."""
    return spans([sum(lengths) for lengths in trajectories])


@given(TRAJECTORIES, st.sampled_from(["turn", "trajectory", "normalised"]), st.integers(0, 999))
def test_value_and_gradient_are_those_of_the_definition_however_the_passes_are_cut(
    trajectories: list[list[int]], level: str, seed: int
) -> None:
    """Passes hold whole responses, drawn in any order, so trajectories are spread over passes."""
    responses = spans([length for lengths in trajectories for length in lengths])
    units = units_of(trajectories) if level == "trajectory" else responses
    logprobs, old, advantages, weights = drawn(sum(map(len, responses)), seed)

    expected = logprobs.clone().requires_grad_()
    value = by_definition(expected, old, advantages, weights, units, level == "normalised")
    value.backward()

    found = logprobs.clone().requires_grad_()
    sums = unit_sums(logprobs - old, advantages, weights, owners(units))
    random = torch.Generator().manual_seed(seed)
    passes = torch.randint(0, 3, (len(responses),), generator=random).tolist()
    total = torch.zeros((), dtype=torch.float64)
    for number in range(3):
        tokens = [
            t for response, its in zip(responses, passes, strict=True) if its == number for t in response
        ]
        loss, _ = clipped_units(found[tokens], sums[tokens], LOW, HIGH, level == "normalised")
        total = total + loss
    total.backward()

    torch.testing.assert_close(total, value)
    torch.testing.assert_close(found.grad, expected.grad)


def test_the_loss_of_turns_and_of_a_trajectory_by_hand() -> None:
    """Ratios 1.5, 0.5 | 1.6 | 0.6: the turns' are 0.75, 1.6 and 0.6, the trajectory's is 0.72."""
    logprobs = torch.tensor([1.5, 0.5, 1.6, 0.6]).log()
    advantages = torch.tensor([1.0, 1.0, 1.0, -1.0])
    tokens = scored(logprobs, torch.zeros(4), advantages, torch.full((4,), 0.25), lengths=[2, 1, 1])
    by_turn, metrics = clipped(0.2, 0.2, 0.0, "turn").loss(tokens)
    # min(.75, .8) = .75 for the unit of two tokens; min(1.6, 1.2) = 1.2; min(-0.6, -0.8) = -0.8
    torch.testing.assert_close(by_turn, torch.tensor(-0.25 * (0.75 + 1.2 - 0.8)))
    assert float(metrics["clip_fraction"]) == 1

    sums = unit_sums(logprobs, advantages, tokens.weights, torch.zeros(4, dtype=torch.long))
    whole, metrics = clipped(0.2, 0.2, 0.0, "trajectory").loss(replace(tokens, trajectory_sums=sums))
    # three tokens at min(.72, .8) = .72, one at min(-.72, -.8) = -.8; their mean, at a token's weight
    torch.testing.assert_close(whole, torch.tensor(-0.25 * (3 * 0.72 - 0.8) / 4))
    assert float(metrics["clip_fraction"]) == 1


def gradient(level: str, trajectories: list[list[int]], seed: int, on_policy: bool) -> torch.Tensor:
    """[tokens] the gradient of the loss. All tokens of a trajectory share its advantage, and all tokens have
    one weight."""
    units = units_of(trajectories)
    logprobs, old, drawn_advantages, _ = (each.float() for each in drawn(sum(map(len, units)), seed))
    advantages = drawn_advantages[owners(units)]
    found = logprobs.clone().requires_grad_()
    weights = torch.full_like(logprobs, 1 / len(logprobs))
    before = logprobs if on_policy else old
    lengths = [length for each in trajectories for length in each]
    tokens = replace(
        scored(found, before, advantages, weights, lengths=lengths),
        trajectory_sums=unit_sums(logprobs - before, advantages, weights, owners(units)),
    )
    loss, _ = clipped(0.2, 0.2, 0.0, level).loss(tokens)
    loss.backward()
    assert found.grad is not None
    return found.grad


@given(TRAJECTORIES, st.sampled_from(["turn", "trajectory"]), st.integers(0, 999))
def test_at_the_sampling_policy_all_levels_have_the_gradient_of_the_policy(
    trajectories: list[list[int]], level: str, seed: int
) -> None:
    """The first update of a strictly on-policy step: - w_t A_t at every token."""
    expected = gradient("token", trajectories, seed, on_policy=True)
    torch.testing.assert_close(gradient(level, trajectories, seed, on_policy=True), expected)


@given(st.lists(st.integers(1, 6).map(lambda length: [length]), min_size=1, max_size=5), st.integers(0, 999))
def test_with_one_response_a_trajectory_turns_and_trajectories_agree(
    trajectories: list[list[int]], seed: int
) -> None:
    by_turn, whole = (gradient(level, trajectories, seed, False) for level in ("turn", "trajectory"))
    torch.testing.assert_close(by_turn, whole, rtol=0, atol=0)


@given(
    st.lists(st.integers(1, 5).map(lambda turns: [1] * turns), min_size=1, max_size=5), st.integers(0, 999)
)
def test_with_one_token_a_response_tokens_and_turns_agree(trajectories: list[list[int]], seed: int) -> None:
    by_token, by_turn = (gradient(level, trajectories, seed, False) for level in ("token", "turn"))
    torch.testing.assert_close(by_token, by_turn)


@pytest.mark.parametrize("level", ["turn", "trajectory"])
@pytest.mark.parametrize(("nats", "advantage"), [(0.5, 1.0), (0.5, -1.0), (-0.5, 1.0), (-0.5, -1.0)])
def test_ten_thousand_tokens_neither_overflow_nor_stop_what_should_move(
    level: str, nats: float, advantage: float
) -> None:
    """The ratio is exp(5000) or exp(-5000): a negative advantage must lower the first, and nothing else may
    move."""
    count = 10_000
    logprobs = torch.full((count,), nats, requires_grad=True)
    advantages, weights = torch.full((count,), advantage), torch.full((count,), 1 / count)
    sums = unit_sums(logprobs, advantages, weights, torch.zeros(count, dtype=torch.long))
    tokens = replace(scored(logprobs, torch.zeros(count), advantages, weights), trajectory_sums=sums)
    loss, metrics = clipped(0.2, 0.2, 0.0, level).loss(tokens)
    loss.backward()
    assert torch.isfinite(loss) and logprobs.grad is not None and torch.isfinite(logprobs.grad).all()
    assert bool((logprobs.grad > 1).all()) == (nats > 0 > advantage)
    assert bool((logprobs.grad == 0).all()) == (not nats > 0 > advantage)
    assert float(metrics["clip_fraction"]) == pytest.approx(1)


def test_a_loss_over_trajectories_refuses_tokens_without_their_trajectories() -> None:
    tokens = scored(torch.zeros(2), torch.zeros(2), torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match="trajectory_sums is None; ratios over trajectories need"):
        clipped(0.2, 0.2, 0.0, "trajectory").loss(tokens)
