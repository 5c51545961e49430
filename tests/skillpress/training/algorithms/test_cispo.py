"""CISPO compared with its objective, and its difference from the clipped surrogate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support.training.batches import CISPO, algorithm, clipped
from tests.support.training.scored import scored

TOKENS = st.lists(
    st.tuples(st.floats(-3, 3), st.floats(-3, -0.1), st.floats(-2, 2), st.floats(0.01, 1)),
    min_size=1,
    max_size=8,
)
"""A token's log ratio, log-probability, advantage and weight."""


def cispo(clip_low: float, clip_high: float, kl_coefficient: float):
    return algorithm(CISPO, clip_low=clip_low, clip_high=clip_high, kl_coefficient=kl_coefficient)


def columns(tokens: list[tuple[float, float, float, float]]) -> list[torch.Tensor]:
    """[tokens] log-probabilities, older ones, advantages, weights."""
    moved, logprobs, advantages, weights = torch.tensor(tokens, dtype=torch.float64).T
    return [logprobs, logprobs - moved, advantages, weights]


@given(TOKENS, st.sampled_from([0.2, 1.0]))
def test_every_token_has_the_gradient_of_its_clipped_weight(tokens: list, low: float) -> None:
    """- w clip(rho) A d logp, and the loss - sum w clip(rho) A logp, both computed with NumPy."""
    logprobs, old, advantages, weights = columns(tokens)
    found = logprobs.clone().requires_grad_()
    loss, _ = cispo(low, 0.5, 0.0).loss(scored(found, old, advantages, weights))
    loss.backward()
    cut = np.clip(np.exp(logprobs.numpy() - old.numpy()), 1 - low, 1.5)
    expected = -weights.numpy() * cut * advantages.numpy()
    np.testing.assert_allclose(found.grad, expected, rtol=1e-12, atol=1e-15)
    assert loss.item() == pytest.approx((expected * logprobs.numpy()).sum())


def test_no_token_is_dropped_where_the_clipped_surrogate_drops_it() -> None:
    """Ratio 9 at advantage 1 and 1/9 at -1: the surrogate gives no gradient, CISPO has the weights 5 and
    1/9."""
    old, advantages = torch.zeros(2), torch.tensor([1.0, -1.0])
    logprobs = torch.tensor([9.0, 1 / 9]).log().requires_grad_()
    tokens = scored(logprobs, old, advantages, torch.ones(2))
    dropped, _ = clipped(0.2, 0.2, 0.0).loss(tokens)
    (gradient,) = torch.autograd.grad(dropped, logprobs)
    assert gradient.tolist() == [0, 0]
    kept, metrics = cispo(1.0, 4.0, 0.0).loss(tokens)
    (gradient,) = torch.autograd.grad(kept, logprobs)
    torch.testing.assert_close(gradient, torch.tensor([-5.0, 1 / 9]))
    assert float(metrics["clip_fraction"]) == 1


def test_a_ratio_beyond_all_numbers_is_cut_at_the_bound() -> None:
    logprobs = torch.tensor([-1.0], requires_grad=True)
    loss, _ = cispo(1.0, 4.0, 0.0).loss(
        scored(logprobs, torch.tensor([-200.0]), torch.ones(1), torch.ones(1))
    )
    loss.backward()
    assert logprobs.grad is not None and logprobs.grad.tolist() == [-5.0]


def test_every_token_of_a_step_weighs_alike_and_the_kl_term_is_added() -> None:
    lengths = np.array([1, 3])
    assert algorithm(CISPO).token_weights(lengths, 4.0, 2.0, 4).tolist() == [0.25, 0.25]
    tokens = scored(
        torch.tensor([-1.0]), torch.tensor([-1.0]), torch.zeros(1), torch.ones(1), torch.tensor([-2.0])
    )
    loss, _ = cispo(1.0, 4.0, 0.5).loss(tokens)
    torch.testing.assert_close(loss, torch.tensor(0.5 * np.exp(-1.0), dtype=torch.float32))
