"""The clipped surrogate compared with its definition, and the properties of its weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from skillpress.training.algorithms.algorithm import token_weights
from tests.support.training.batches import clipped
from tests.support.training.scored import scored


def test_the_loss_is_the_pessimistic_surrogate_by_hand() -> None:
    old = torch.zeros(4)
    logprobs = torch.tensor([1.5, 1.5, 0.5, 0.5]).log()  # ratios 1.5, 1.5, 0.5, 0.5
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])
    loss, metrics = clipped(0.2, 0.2, 0.0).loss(scored(logprobs, old, advantages, torch.ones(4)))
    # min(1.5, 1.2) = 1.2; min(-1.5, -1.2) = -1.5; min(0.5, 0.8) = 0.5; min(-0.5, -0.8) = -0.8
    torch.testing.assert_close(loss, torch.tensor(-(1.2 - 1.5 + 0.5 - 0.8)))
    assert float(metrics["clip_fraction"]) == 4


def test_the_dual_clip_bounds_what_a_bad_token_can_cost_by_hand() -> None:
    """Ratios 4, 4, 2 and 0.5 at c = 3: only the first, of a negative advantage, is bounded."""
    logprobs = torch.tensor([4.0, 4.0, 2.0, 0.5]).log().requires_grad_()
    advantages = torch.tensor([-1.0, 1.0, -1.0, -1.0])
    loss, _ = clipped(0.2, 0.2, 0.0, dual_clip=3.0).loss(
        scored(logprobs, torch.zeros(4), advantages, torch.ones(4))
    )
    loss.backward()
    # max(-4, -3) = -3; min(4, 1.2) = 1.2; -2; max(-0.8, -3) = -0.8
    torch.testing.assert_close(loss.detach(), torch.tensor(-(-3 + 1.2 - 2 - 0.8)))
    torch.testing.assert_close(logprobs.grad, torch.tensor([0.0, 0.0, 2.0, 0.0]))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ratio": "turn", "dual_clip": 3.0}, "dual_clip is 3 and ratio 'turn'"),
        ({"dual_clip": 1.1}, "dual_clip is 1.1: must be above 1 [+] clip_high, which is 1.2"),
    ],
)
def test_a_dual_clip_that_can_do_nothing_right_is_refused(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        clipped(0.2, 0.2, 0.0, **keys)


def test_a_higher_upper_clip_lets_good_tokens_go_further_and_bad_ones_no_further() -> None:
    """DAPO's clip-higher: ratios 1.25 and 0.75 at low 0.2 and high 0.28."""
    logprobs = torch.tensor([1.25, 0.75]).log().requires_grad_()
    loss, metrics = clipped(0.2, 0.28, 0.0).loss(
        scored(logprobs, torch.zeros(2), torch.tensor([1.0, -1.0]), torch.ones(2))
    )
    loss.backward()
    torch.testing.assert_close(loss.detach(), torch.tensor(-(1.25 - 0.8)))
    torch.testing.assert_close(logprobs.grad, torch.tensor([-1.25, 0.0]))
    assert float(metrics["clip_fraction"]) == 1


def test_at_the_sampling_policy_the_gradient_is_that_of_reinforce() -> None:
    logprobs = torch.tensor([-1.0, -2.0], requires_grad=True)
    advantages, weights = torch.tensor([3.0, -1.0]), torch.tensor([0.25, 0.75])
    loss, _ = clipped(0.2, 0.2, 0.0).loss(scored(logprobs, logprobs.detach(), advantages, weights))
    loss.backward()
    torch.testing.assert_close(logprobs.grad, -advantages * weights)


def test_the_kl_estimate_is_unbiased_and_never_negative() -> None:
    generator = torch.Generator().manual_seed(0)
    policy = torch.tensor([0.7, 0.2, 0.1])
    reference = torch.tensor([0.3, 0.3, 0.4])
    exact = float((policy * (policy / reference).log()).sum())
    tokens = torch.multinomial(policy, 200_000, replacement=True, generator=generator)
    logprobs, ones = policy.log()[tokens], torch.full((200_000,), 1 / 200_000)
    _, metrics = clipped(0.2, 0.2, 1.0).loss(
        scored(logprobs, logprobs, torch.zeros(200_000), ones, reference.log()[tokens])
    )
    assert abs(float(metrics["reference_kl"]) - exact) < 0.01
    single = reference.log() - policy.log()
    assert bool((single.exp() - single - 1 >= 0).all())


def test_weights_of_a_step_sum_to_one_and_weigh_tokens_or_samples_alike() -> None:
    lengths = np.array([1, 3, 4])
    by_token = token_weights(lengths, "token_mean", 8.0, 3.0)
    by_sample = token_weights(lengths, "sequence_mean", 8.0, 3.0)
    assert np.isclose((by_token * lengths).sum(), 1) and len(set(by_token)) == 1
    np.testing.assert_allclose(by_sample * lengths, [1 / 3] * 3)
