"""GSPO compared with its objective, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support.training.batches import GSPO, algorithm
from tests.support.training.scored import scored

LENGTHS = st.lists(st.integers(1, 5), min_size=1, max_size=5)


def drawn(lengths: list[int], seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[tokens] log-probabilities and older ones, [responses] advantages."""
    random = torch.Generator().manual_seed(seed)
    old = -torch.rand(sum(lengths), generator=random, dtype=torch.float64) - 0.5
    moved = 0.3 * torch.randn(sum(lengths), generator=random, dtype=torch.float64)
    return old + moved, old, torch.randn(len(lengths), generator=random, dtype=torch.float64)


def weights_of(lengths: list[int]) -> torch.Tensor:
    """[tokens] weights that the algorithm sets for a step of these responses."""
    counts = np.array(lengths)
    each = algorithm(GSPO).token_weights(counts, float(counts.sum()), float(len(counts)), 4)
    return torch.tensor(np.repeat(each, counts))


@given(LENGTHS, st.integers(0, 999))
def test_the_loss_is_the_papers_objective(lengths: list[int], seed: int) -> None:
    """1/G sum_i min(s_i A_i, clip(s_i) A_i), differentiated by autograd through the power 1/|y_i|."""
    logprobs, old, advantages = drawn(lengths, seed)
    by_hand = logprobs.clone().requires_grad_()
    terms = []
    for its, before, advantage in zip(by_hand.split(lengths), old.split(lengths), advantages, strict=True):
        ratio = (its.exp().prod() / before.exp().prod()) ** (1 / len(its))
        terms.append(torch.minimum(ratio * advantage, ratio.clamp(0.9, 1.15) * advantage))
    expected = -torch.stack(terms).mean()
    expected.backward()

    found = logprobs.clone().requires_grad_()
    each = torch.repeat_interleave(advantages, torch.tensor(lengths))
    loss, _ = algorithm(GSPO, clip_high=0.15).loss(
        scored(found, old, each, weights_of(lengths), lengths=lengths)
    )
    loss.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(found.grad, by_hand.grad)


def test_a_response_is_clipped_as_a_whole_by_hand() -> None:
    """Ratios 2 and 0.5 | 1.44 and 1: their means are 1 and 1.2, and the second leaves the clip."""
    logprobs = torch.tensor([2.0, 0.5, 1.44, 1.0]).log().requires_grad_()
    tokens = scored(logprobs, torch.zeros(4), torch.ones(4), torch.full((4,), 0.25), lengths=[2, 2])
    loss, metrics = algorithm(GSPO).loss(tokens)
    loss.backward()
    torch.testing.assert_close(loss.detach(), torch.tensor(-0.5 * (1 + 1.1)))
    torch.testing.assert_close(logprobs.grad, torch.tensor([-0.25, -0.25, 0.0, 0.0]))
    assert float(metrics["clip_fraction"]) == pytest.approx(0.5)


@given(LENGTHS, st.integers(0, 999))
def test_cutting_a_batch_between_responses_changes_nothing(lengths: list[int], seed: int) -> None:
    logprobs, old, advantages = drawn(lengths, seed)
    each, weights = torch.repeat_interleave(advantages, torch.tensor(lengths)), weights_of(lengths)
    loss = algorithm(GSPO).loss
    whole, _ = loss(scored(logprobs, old, each, weights, lengths=lengths))
    parts = zip(*(values.split(lengths) for values in (logprobs, old, each, weights)), strict=True)
    torch.testing.assert_close(sum(loss(scored(*part))[0] for part in parts), whole)


def test_the_kl_term_is_added_with_its_weight() -> None:
    """One token has log-probability -1, and -2 under the reference: k3 = exp(-1) + 1 - 1."""
    tokens = scored(
        torch.tensor([-1.0]), torch.tensor([-1.0]), torch.zeros(1), torch.ones(1), torch.tensor([-2.0])
    )
    loss, metrics = algorithm(GSPO, kl_coefficient=0.5).loss(tokens)
    torch.testing.assert_close(loss, torch.tensor(0.5 * np.exp(-1.0), dtype=torch.float32))
    assert float(metrics["reference_kl"]) == pytest.approx(np.exp(-1.0))
