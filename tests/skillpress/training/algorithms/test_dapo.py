"""DAPO: its advantages and the punishment of overlong responses, calculated by hand. Other tests cover its
filter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import batch_of, one_process
from tests.support.training.batches import DAPO, algorithm, step, trajectory
from tests.support.training.scored import scored


def responses(lengths: list[int], rewards: list[float], success: float = 10.0, longest: int = 40):
    """A group of one-step episodes, with responses of these lengths, of at most ``longest``; ``success`` is
    the largest reward."""
    return batch_of(
        [
            trajectory([step([("success", reward, "trajectory")], tokens=count)])
            for count, reward in zip(lengths, rewards, strict=True)
        ],
        [0] * len(lengths),
        success,
        longest,
    )


def eq_13(length: int, longest: int, cache: float) -> float:
    """The paper's R_length, case by case."""
    if length <= longest - cache:
        return 0.0
    if length <= longest:
        return ((longest - cache) - length) / cache
    return -1.0


@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(-10, 10)), min_size=2, max_size=8),
    st.sampled_from([0.1, 0.25, 0.5, 1.0]),
    st.floats(0, 1),
)
def test_advantages_are_those_of_grpo_on_rewards_with_the_papers_punishment(
    rollouts, share: float, penalty: float
) -> None:
    lengths, rewards = map(list, zip(*rollouts, strict=True))
    method = algorithm(DAPO, overlong_share=share, overlong_penalty=penalty)
    punished = np.array(
        [
            reward + penalty * 10 * eq_13(length, 40, share * 40)
            for length, reward in zip(lengths, rewards, strict=True)
        ]
    )
    expected = (punished - punished.mean()) / (punished.std(ddof=1) + 1e-6)
    found = method.advantages(responses(lengths, rewards), one_process)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_punishment_by_hand_counts_for_its_own_step_alone() -> None:
    """The last 4 of 10 tokens cost, so 8 tokens are half way: -2 of 4. Scores are 10, 8 and 0, 0, and each
    step counts as half a trajectory: mean 4.5, mean squares (5.5^2 + 3.5^2) / 2 = 21.25 and 4.5^2 = 20.25."""
    win = [step([], tokens=6), step([("success", 10.0, "trajectory")], tokens=8)]
    lost = [step([], tokens=1), step([], tokens=0)]
    played = batch_of([trajectory(win, True), trajectory(lost)], [0, 0], 10.0, 10)
    method = algorithm(DAPO, overlong_share=0.4, overlong_penalty=0.4)
    found = method.advantages(played, one_process)
    np.testing.assert_allclose(found, np.array([5.5, 3.5, -4.5, -4.5]) / 41.5**0.5, rtol=1e-6)
    assert played.scores.tolist() == [10, 10, 0, 0], "the batch is as it was"
    assert method.describe(played, one_process) == {"overlong": 1 / 3}, "of three responses"


@given(st.sampled_from([0.09, 0.1, 1.0, 30.0]))
def test_the_scale_of_the_rewards_changes_no_advantage(scale: float) -> None:
    lengths, rewards = [40, 36, 2, 39], np.array([10.0, 10.0, 0.0, 0.0])
    method = algorithm(DAPO, overlong_share=0.25, overlong_penalty=0.5)
    expected = method.advantages(responses(lengths, rewards.tolist()), one_process)
    scaled = responses(lengths, (scale * rewards).tolist(), success=10 * scale)
    np.testing.assert_allclose(method.advantages(scaled, one_process), expected, rtol=1e-4)


def test_the_metric_is_that_of_all_processes_and_nothing_where_nothing_was_sampled() -> None:
    method = algorithm(DAPO, overlong_share=0.5)
    others = {"overlong": 2.0, "responses": 6.0}
    found = method.describe(
        responses([4, 1], [0, 0], longest=4), lambda mine: {k: mine[k] + others[k] for k in mine}
    )
    assert found == {"overlong": 3 / 8}
    assert method.describe(responses([0], [0.0]), one_process) == {}


def test_a_ratio_between_the_two_clips_gives_gradient_upwards_only() -> None:
    """1.25 is below 1.28 and above 1.2."""
    old = torch.tensor([-2.0])
    for clip_high, moves in ((0.28, True), (0.2, False)):
        logprobs = (old + np.log(1.25)).requires_grad_()
        loss, _ = algorithm(DAPO, clip_high=clip_high).loss(
            scored(logprobs, old, torch.tensor([1.0]), torch.tensor([1.0]))
        )
        loss.backward()
        assert logprobs.grad is not None
        assert float(logprobs.grad) == (pytest.approx(-1.25) if moves else 0)
