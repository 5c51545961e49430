"""Imitation of the policy's own successes: which steps teach, how much, and the gradient against autograd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import batch_of, one_process
from tests.support.training.batches import EXPERT_ITERATION, algorithm, step, trajectory
from tests.support.training.scored import scored

EPISODES = st.lists(
    st.tuples(st.booleans(), st.lists(st.integers(0, 4), min_size=1, max_size=4)), min_size=1, max_size=6
)
"""(won, tokens of each step)."""


def played(episodes, groups=None, own=0.0):
    made = []
    for won, counts in episodes:
        steps = [step([("invalid", own, "step")], tokens=count) for count in counts[:-1]]
        last = step([("success", 10.0 * won, "trajectory")], tokens=counts[-1])
        made.append(trajectory([*steps, last], won))
    return batch_of(made, groups or [0] * len(made), 10.0, 4)


def judged(found, add=one_process) -> np.ndarray:
    return algorithm(EXPERT_ITERATION).advantages(found, add)


@given(EPISODES)
def test_the_weighted_advantages_are_one_over_the_tokens_of_successes(episodes) -> None:
    """w_t = 1 / all tokens: w_t A_t is 1 / (tokens of successes) there and 0 elsewhere."""
    found = played(episodes)
    imitated = sum(sum(counts) for won, counts in episodes if won)
    every = sum(sum(counts) for _, counts in episodes)
    if not imitated:
        return
    expected = [won / imitated for won, counts in episodes for _ in counts]
    np.testing.assert_allclose(judged(found) / every, expected)
    total = (judged(found) / every * found.tokens).sum()
    assert total == pytest.approx(1), "the weights of what teaches sum to 1"


@given(EPISODES, st.randoms(use_true_random=False))
def test_neither_order_nor_groups_matter(episodes, random) -> None:
    order = list(range(len(episodes)))
    random.shuffle(order)
    groups = [random.randrange(3) for _ in episodes]
    plain = judged(played(episodes))
    ends = np.cumsum([len(counts) for _, counts in episodes])
    parts = [plain[ends[i] - len(episodes[i][1]) : ends[i]] for i in order]
    np.testing.assert_array_equal(judged(played([episodes[i] for i in order], groups)), np.concatenate(parts))


def test_without_a_success_nothing_teaches() -> None:
    found = played([(False, [2, 2]), (False, [1])])
    assert (judged(found) == 0).all()
    assert algorithm(EXPERT_ITERATION).describe(found, one_process) == {"imitated": 0}
    assert algorithm(EXPERT_ITERATION).describe(played([(True, [0])]), one_process) == {}


def test_a_shaped_success_weighs_by_what_is_left_of_its_return_and_never_less_than_nothing() -> None:
    """Penalties 4 and 12 of 10 leave 0.6 and 0; of 6 tokens the first episode's 3 teach."""
    found = replace(played([(True, [2, 1]), (True, [1]), (False, [2])]), penalty=np.array([4.0, 12.0, 0.0]))
    np.testing.assert_allclose(judged(found), [0.6 * 6 / 3, 0.6 * 6 / 3, 0, 0])


def test_a_penalty_of_the_step_alone_lowers_that_step() -> None:
    found = played([(True, [1, 1])], own=-1.0)
    np.testing.assert_allclose(judged(found), [0.9, 1.0])


def test_two_processes_divide_by_the_tokens_of_both() -> None:
    episodes = [(True, [2, 1]), (False, [4]), (True, [3]), (False, [2, 2])]
    together = judged(played(episodes))
    others = [{"sampled": 7.0, "imitated": 3.0}, {"sampled": 7.0, "imitated": 3.0}]
    halves = [
        judged(played(part), lambda mine, other=other: {k: mine[k] + other[k] for k in mine})
        for part, other in zip((episodes[:2], episodes[2:]), others, strict=True)
    ]
    np.testing.assert_allclose(np.concatenate(halves), together)


def test_the_gradient_is_that_of_the_mean_log_likelihood_of_the_successes_tokens() -> None:
    """Tokens 0 and 1 belong to a success, token 2 to a failure; the sampling policy makes no difference."""
    torch.manual_seed(0)
    logits = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([4, 0, 2])
    logprobs = logits.log_softmax(1)[torch.arange(3), tokens]
    advantages = judged(played([(True, [2]), (False, [1])]))
    weights = torch.full((3,), 1 / 3, dtype=torch.float64)
    per_token = torch.tensor(np.repeat(advantages, [2, 1]))
    loss, _ = algorithm(EXPERT_ITERATION).loss(
        scored(logprobs, logprobs.detach() - 1, per_token, weights, lengths=[2, 1])
    )
    (found,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (expected,) = torch.autograd.grad(-logprobs[:2].mean(), logits)
    torch.testing.assert_close(found, expected)


def test_its_loss_is_right_for_several_updates_of_a_batch() -> None:
    assert not algorithm(EXPERT_ITERATION).one_update_per_step
