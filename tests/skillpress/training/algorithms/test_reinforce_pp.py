"""REINFORCE++ compared with L0's formulas and with autograd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import one_process
from tests.support.training.batches import REINFORCE_PP, algorithm, batch
from tests.support.training.scored import scored

TRAJECTORIES = st.lists(
    st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=1, max_size=5), min_size=1, max_size=6
)


def judged(played, discount: float = 1.0, add=one_process):
    return algorithm(REINFORCE_PP, discount=discount).advantages(played, add)


@given(TRAJECTORIES, st.floats(0, 1))
def test_advantages_are_discounted_returns_normalised_over_all_steps_of_the_batch(
    rewards: list[list[float]], discount: float
) -> None:
    returns = np.array(
        [
            sum(discount ** (later - k) * steps[later] for later in range(k, len(steps)))
            for steps in rewards
            for k in range(len(steps))
        ]
    )
    expected = (returns - returns.mean()) / np.sqrt(returns.var() + 1e-8)
    found = judged(batch(rewards, range(len(rewards))), discount)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_the_shapings_penalty_is_part_of_the_last_reward() -> None:
    played = batch([[0.0, 10.0], [0.0]], [0, 1])
    shaped = judged(replace(played, penalty=np.array([4.0, 0.0])), 0.5)
    np.testing.assert_allclose(shaped, judged(batch([[0.0, 6.0], [0.0]], [0, 1]), 0.5))


def test_a_part_of_its_own_is_passed_back_to_no_earlier_step() -> None:
    played = batch([[0.0, 10.0], [0.0]], [0, 1], own=[[0.0, -1.0], [0.0]])
    returns = np.array([10.0, 9.0, 0.0])
    expected = (returns - returns.mean()) / np.sqrt(returns.var() + 1e-8)
    np.testing.assert_allclose(judged(played), expected)


@given(st.floats(-10, 10), st.integers(1, 6))
def test_equal_returns_teach_exactly_nothing(value: float, count: int) -> None:
    assert (judged(batch([[value]] * count, range(count))) == 0).all()


def test_two_processes_normalise_over_both_their_steps() -> None:
    """Each process receives the sums of both, as from a collective."""
    rewards = [[0.0, 10.0], [1.0], [0.0, 0.0, 2.0], [5.0]]
    together = judged(batch(rewards, range(4)))
    halves = [batch(rewards[:2], range(2)), batch(rewards[2:], range(2))]
    returns = [half.rewards_to_go(1.0) for half in halves]
    mean = np.concatenate(returns).mean()
    sums = {
        "steps": 7.0,
        "values": float(sum(part.sum() for part in returns)),
        "squares": float(sum(((part - mean) ** 2).sum() for part in returns)),
    }
    shared = [judged(half, add=lambda values: {name: sums[name] for name in values}) for half in halves]
    np.testing.assert_allclose(np.concatenate(shared), together)


def test_the_gradient_is_that_of_the_weighted_log_likelihood() -> None:
    """L0's estimator: token-mean of A times the gradient of log p, here through a softmax."""
    torch.manual_seed(0)
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([3, 0, 6, 2, 2])
    advantages = torch.tensor([1.5, -0.5, 0.25, 0.0, 2.0], dtype=torch.float64)
    weights = torch.full((5,), 1 / 5, dtype=torch.float64)
    logprobs = logits.log_softmax(1)[torch.arange(5), tokens]
    loss, metrics = algorithm(REINFORCE_PP).loss(scored(logprobs, logprobs.detach(), advantages, weights))
    loss.backward()
    chances = logits.detach().softmax(1)
    expected = chances.clone()
    expected[torch.arange(5), tokens] -= 1  # the gradient of -log p through a softmax
    torch.testing.assert_close(logits.grad, expected * (advantages / 5)[:, None])
    assert float(metrics["approximate_kl"]) == 0


def test_there_is_no_ratio_and_no_clipping() -> None:
    """The sampling policy does not change the loss or the gradient."""
    logprobs = torch.tensor([-1.0, -2.0], requires_grad=True)
    arguments = torch.tensor([3.0, -1.0]), torch.tensor([0.5, 0.5])
    loss = algorithm(REINFORCE_PP).loss
    near, _ = loss(scored(logprobs, logprobs.detach(), *arguments))
    far, _ = loss(scored(logprobs, logprobs.detach() - 5, *arguments))
    assert near.item() == far.item() == pytest.approx(-(0.5 * 3 * -1 + 0.5 * -1 * -2))


def test_the_kl_term_is_added_with_its_coefficient() -> None:
    logprobs, reference = torch.tensor([-1.0, -2.0]), torch.tensor([-1.5, -1.0])
    loss, metrics = algorithm(REINFORCE_PP, kl_coefficient=0.1).loss(
        scored(logprobs, logprobs, torch.zeros(2), torch.tensor([0.5, 0.5]), reference)
    )
    # d = -0.5 and 1: k3 = exp(-0.5) + 0.5 - 1 = 0.106531 and e - 2 = 0.718282.
    assert float(metrics["reference_kl"]) == pytest.approx((0.106531 + 0.718282) / 2, abs=1e-6)
    assert float(loss) == pytest.approx(0.1 * (0.106531 + 0.718282) / 2, abs=1e-6)
