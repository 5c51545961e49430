"""PPO's estimates compared with explicit sums, and its loss with its definition and autograd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.algorithm import ScoredTokens
from skillpress.training.algorithms.batch import Batch, one_process
from skillpress.training.algorithms.ppo import explained_variance
from tests.support.training.batches import PPO, algorithm, batch
from tests.support.training.scored import scored

NUMBERS = st.floats(-5, 5).map(lambda x: round(x, 3))
TRAJECTORIES = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5), min_size=1, max_size=5)
"""(reward, value) of the steps of some trajectories."""
SHARES = st.floats(0, 1)


def valued(trajectories: list[list[tuple[float, float]]], maximum: float = 1.0) -> Batch:
    played = batch(
        [[reward for reward, _ in steps] for steps in trajectories],
        range(len(trajectories)),
        core_maximum=maximum,
    )
    return replace(played, values=np.array([value for steps in trajectories for _, value in steps]))


def by_sums(steps: list[tuple[float, float]], discount: float, gae_lambda: float) -> list[float]:
    """The estimator's definition: for every step the sum over the errors of it and all later steps."""
    rewards, values = zip(*steps, strict=True)
    values = (*values, 0.0)
    errors = [rewards[k] + discount * values[k + 1] - values[k] for k in range(len(steps))]
    return [
        sum((discount * gae_lambda) ** (later - k) * errors[later] for later in range(k, len(steps)))
        for k in range(len(steps))
    ]


def normalised(advantages: np.ndarray) -> np.ndarray:
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


@given(TRAJECTORIES, SHARES, SHARES)
def test_what_values_are_to_learn_is_the_estimated_advantage_and_the_value(
    trajectories: list[list[tuple[float, float]]], discount: float, gae_lambda: float
) -> None:
    method = algorithm(PPO, discount=discount, gae_lambda=gae_lambda)
    played = valued(trajectories)
    expected = np.concatenate([by_sums(steps, discount, gae_lambda) for steps in trajectories])
    np.testing.assert_allclose(method.value_targets(played), expected + played.values, atol=1e-9)


@given(TRAJECTORIES, SHARES, SHARES)
def test_advantages_are_the_estimates_normalised_over_all_steps_of_the_batch(
    trajectories: list[list[tuple[float, float]]], discount: float, gae_lambda: float
) -> None:
    method = algorithm(PPO, discount=discount, gae_lambda=gae_lambda)
    estimates = np.concatenate([by_sums(steps, discount, gae_lambda) for steps in trajectories])
    found = method.advantages(valued(trajectories), one_process)
    if estimates.std() > 1e-6:
        np.testing.assert_allclose(found, normalised(estimates), rtol=1e-5, atol=1e-6)


def test_by_hand_at_half_and_half() -> None:
    """Rewards 0 and 8, values 4 and 2: errors 0 + 1 - 4 = -3 and 8 - 2 = 6, advantages -3 + 6 / 4 and 6."""
    played = valued([[(0.0, 4.0), (8.0, 2.0)]])
    targets = algorithm(PPO, discount=0.5, gae_lambda=0.5).value_targets(played)
    np.testing.assert_allclose(targets, [4 - 1.5, 8])


@given(TRAJECTORIES, SHARES, st.floats(0.5, 20))
def test_the_scale_of_the_reward_changes_neither_advantages_nor_targets(
    trajectories: list[list[tuple[float, float]]], gae_lambda: float, scale: float
) -> None:
    """Values are in units of the largest core reward."""
    method = algorithm(PPO, gae_lambda=gae_lambda)
    plain = valued(trajectories)
    larger = valued([[(scale * r, v) for r, v in steps] for steps in trajectories], maximum=scale)
    np.testing.assert_allclose(method.value_targets(larger), method.value_targets(plain), atol=1e-6)


@given(NUMBERS, NUMBERS, st.integers(1, 6))
def test_where_all_is_as_expected_alike_nothing_is_taught(reward: float, value: float, count: int) -> None:
    found = algorithm(PPO).advantages(valued([[(reward, value)]] * count), one_process)
    assert (found == 0).all()


def test_the_shapings_penalty_is_part_of_the_last_reward() -> None:
    plain = valued([[(0.0, 0.3), (6.0, 0.1)], [(0.0, 0.2)]])
    shaped = replace(valued([[(0.0, 0.3), (10.0, 0.1)], [(0.0, 0.2)]]), penalty=np.array([4.0, 0.0]))
    method = algorithm(PPO, gae_lambda=0.5)
    np.testing.assert_allclose(method.value_targets(shaped), method.value_targets(plain))


def test_a_part_of_its_own_is_added_to_its_steps_advantage_and_is_in_no_target() -> None:
    played = replace(
        batch([[0.0, 10.0], [0.0]], [0, 1], own=[[0.0, -1.0], [0.0]]), values=np.array([0.5, 0.5, 0.5])
    )
    method = algorithm(PPO)
    np.testing.assert_allclose(method.value_targets(played), [1.0, 1.0, 0.0])
    expected = normalised(np.array([0.5, 0.5 - 0.1, -0.5]))
    np.testing.assert_allclose(method.advantages(played, one_process), expected, rtol=1e-6)


def test_a_step_at_which_nothing_was_asked_passes_on_what_follows_it() -> None:
    """Its value of 0 must not count: the state before it has the value of what comes after, discounted
    twice."""
    played = replace(valued([[(0.0, 0.4), (1.0, 0.0), (2.0, 0.6)]]), tokens=np.array([2, 0, 2]))
    # Replaces the missing value: 1 + 0.5 * 0.6 = 1.3. Errors: 0 + 0.5 * 1.3 - 0.4 = 0.25, 0, 2 - 0.6 = 1.4.
    first = 0.25 + 0.25**2 * 1.4
    method = algorithm(PPO, discount=0.5, gae_lambda=0.5)
    np.testing.assert_allclose(method.value_targets(played), [0.4 + first, 0, 2.0])
    found = method.advantages(played, one_process)
    np.testing.assert_allclose(found[[0, 2]], normalised(np.array([first, 1.4])), rtol=1e-6)
    assert found[1] == 0


def test_two_processes_normalise_over_both_their_steps() -> None:
    """Each process receives the sums of both, as from a collective."""
    trajectories = [[(0.0, 0.5), (1.0, 0.2)], [(1.0, 0.1)], [(0.0, 0.3), (0.0, 0.0), (2.0, 0.7)]]
    method = algorithm(PPO, gae_lambda=0.9)
    together = method.advantages(valued(trajectories), one_process)
    estimates = [np.array(by_sums(steps, 1.0, 0.9)) for steps in trajectories]
    everything = np.concatenate(estimates)
    sums = {
        "steps": 6.0,
        "values": float(everything.sum()),
        "squares": float(((everything - everything.mean()) ** 2).sum()),
    }
    halves = [valued(trajectories[:1]), valued(trajectories[1:])]
    shared = [
        method.advantages(half, lambda values: {name: sums[name] for name in values}) for half in halves
    ]
    np.testing.assert_allclose(np.concatenate(shared), together)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=12))
def test_explained_variance_is_one_less_the_share_of_variance_that_values_leave(
    pairs: list[tuple[float, float]],
) -> None:
    values, returns = np.array(pairs).T
    if returns.std() > 1e-3:
        expected = 1 - (returns - values).var() / returns.var()
        assert explained_variance(values, returns, one_process) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_where_all_returns_are_alike_there_is_no_explained_variance() -> None:
    assert explained_variance(np.array([0.1, 0.2]), np.array([1.0, 1.0]), one_process) is None
    assert explained_variance(np.zeros(0), np.zeros(0), one_process) is None
    assert algorithm(PPO).describe(valued([[(1.0, 0.3)], [(1.0, 0.1)]]), one_process) == {}


def test_a_batch_is_described_by_the_variance_that_its_values_explain() -> None:
    """Values are 0.5, 0.25 and 0.75 for returns 1, 1 and 0; a step without sampling does not count."""
    played = replace(
        valued([[(0.0, 0.5), (0.0, 0.0), (1.0, 0.25)], [(0.0, 0.75)]]), tokens=np.array([2, 0, 2, 2])
    )
    found = algorithm(PPO).describe(played, one_process)
    expected = 1 - np.var([0.5, 0.75, -0.75]) / np.var([1.0, 1.0, 0.0])
    assert found == {"value/explained_variance": pytest.approx(expected)}


def test_it_asks_for_values_compares_no_rollouts_and_teaches_everywhere() -> None:
    method = algorithm(PPO)
    assert method.needs_values and method.teaches_everywhere
    assert method.smallest_group == 1 and method.head_rate == 10


def tokens_of(
    values: torch.Tensor, old: list[float], returns: list[float], weights: list[float]
) -> ScoredTokens:
    """Single-token responses without advantage."""
    zeros = torch.zeros(len(values))
    plain = scored(zeros, zeros, zeros, zeros, lengths=[1] * len(values))
    return replace(
        plain,
        values=values,
        old_values=torch.tensor(old),
        value_targets=torch.tensor(returns),
        value_weights=torch.tensor(weights),
    )


def test_the_values_loss_is_the_worse_of_the_plain_and_the_clipped_error_by_hand() -> None:
    """Old value 0, return 1, clip 0.2. At 0.1 both errors are 0.81. At 0.9 the clipped error, 0.64, is
    larger; at -0.5 the plain error, 2.25."""
    values = torch.tensor([0.1, 0.9, -0.5], requires_grad=True)
    loss, metrics = algorithm(PPO).loss(tokens_of(values, [0.0] * 3, [1.0] * 3, [0.5, 0.25, 0.25]))
    expected = 0.5 * 0.81 + 0.25 * 0.64 + 0.25 * 2.25
    assert float(metrics["value/loss"]) == pytest.approx(expected)
    assert float(loss.detach()) == pytest.approx(0.5 * expected)
    assert float(metrics["value/clip_fraction"]) == pytest.approx(0.5)
    loss.backward()
    # 0.5 w 2 (V - G); 0 where the clipped error is larger: the value has moved far enough.
    torch.testing.assert_close(values.grad, torch.tensor([0.5 * -0.9, 0.0, 0.25 * -1.5]))


def test_at_the_old_values_the_gradient_is_that_of_the_squared_error() -> None:
    torch.manual_seed(0)
    hidden, head = torch.randn(7, 4), torch.randn(4, requires_grad=True)
    returns, weights = torch.randn(7), torch.rand(7)
    old = (hidden @ head).detach()
    loss, _ = algorithm(PPO, value_coefficient=0.3).loss(
        tokens_of(hidden @ head, old.tolist(), returns.tolist(), weights.tolist())
    )
    loss.backward()
    expected = 0.3 * 2 * ((old - returns) * weights) @ hidden
    torch.testing.assert_close(head.grad, expected)


@given(st.integers(1, 11), st.integers(0, 1000))
def test_any_split_of_the_responses_adds_up(cut: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 5, 12).tolist()
    logprobs, old, advantages = (torch.tensor(random.normal(size=sum(lengths))) for _ in range(3))
    weights = torch.tensor(random.random(sum(lengths)))
    values, of_values, returns, shares = (torch.tensor(random.normal(size=12)) for _ in range(4))
    loss = algorithm(PPO).loss

    def part(first: int, last: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        span = slice(sum(lengths[:first]), sum(lengths[:last]))
        some = scored(logprobs[span], old[span], advantages[span], weights[span], lengths=lengths[first:last])
        names = ("values", "old_values", "value_targets", "value_weights")
        states = zip(names, (values, of_values, returns, shares.abs()), strict=True)
        return loss(replace(some, **{name: each[first:last] for name, each in states}))

    whole, halves = part(0, 12), [part(0, cut), part(cut, 12)]
    torch.testing.assert_close(halves[0][0] + halves[1][0], whole[0])
    for name, value in whole[1].items():
        torch.testing.assert_close(halves[0][1][name] + halves[1][1][name], value)
