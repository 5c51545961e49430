"""Dr. GRPO compared with its formula, and GRPO's advantages without division."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import one_process
from tests.support.training.batches import DR_GRPO, GRPO, algorithm, batch, of_returns
from tests.support.training.scored import scored

GROUPS = st.lists(st.tuples(st.floats(-10, 10), st.integers(1, 5)), min_size=1, max_size=8)


@given(GROUPS)
def test_advantages_are_returns_less_their_groups_mean(rollouts) -> None:
    returns, lengths = zip(*rollouts, strict=True)
    played = of_returns(returns, [0] * len(returns), lengths)
    expected = np.repeat(np.array(returns) - np.mean(returns), lengths)
    found = algorithm(DR_GRPO).advantages(played, one_process)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_array_equal(found, algorithm(GRPO).advantages(played, one_process))


def test_a_token_weighs_one_over_the_samples_and_the_longest_response_whatever_its_own_has() -> None:
    """The step has 4 samples, two of them in this process; a response may have 10 tokens."""
    method = algorithm(DR_GRPO)
    np.testing.assert_allclose(method.token_weights(np.array([1, 7]), 13.0, 4.0, 10), [1 / 40, 1 / 40])
    assert not len(method.token_weights(np.zeros(0, int), 0.0, 0.0, 10))


def test_the_gradient_is_the_sum_over_tokens_over_the_constant() -> None:
    """The surrogate's gradient at the weights that sampled is minus A over (2 samples times 5 tokens)."""
    logprobs = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64, requires_grad=True)
    method = algorithm(DR_GRPO)
    weights = method.token_weights(np.array([1, 2]), 3.0, 2.0, 5)
    advantages = torch.tensor([3.0, -1.0, -1.0], dtype=torch.float64)
    per_token = torch.tensor(np.repeat(weights, [1, 2]))
    loss, _ = method.loss(scored(logprobs, logprobs.detach(), advantages, per_token, lengths=[1, 2]))
    loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-0.3, 0.1, 0.1])


def test_a_part_of_its_own_lowers_one_steps_score() -> None:
    """Trajectories' mean scores are 9.5 and 0, their mean 4.75."""
    played = batch([[0.0, 10.0], [0.0]], [0, 0], own=[[0.0, -1.0], [0.0]])
    np.testing.assert_allclose(algorithm(DR_GRPO).advantages(played, one_process), [5.25, 4.25, -4.75])
