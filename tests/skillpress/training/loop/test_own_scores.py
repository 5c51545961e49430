"""Scores that an update's own passes have: the gradients are those of scores from passes before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch

from skillpress.core.logprobs import Logprobs
from skillpress.core.trajectory import Step
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.algorithms.importance_weights import TruncatedImportance
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.log_ratios import proximal_ratios
from skillpress.training.loop.model_pass import passes, scored
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.own_scores import completed, prepared, split_trajectories, with_importance
from skillpress.training.loop.policy_loss import PolicyLoss
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import GRPO, GSPO, algorithm, clipped

LIMIT = 40
"""Tokens of a pass, so that there are several passes."""


def episodes(growing: bool) -> Batch:
    """Six episodes of three steps, as an engine sampled them that is off by up to half a nat a token."""
    random = np.random.default_rng(0)
    steps = []
    for _ in range(6):
        prompt = tuple(map(int, random.integers(2, 50, random.integers(2, 6))))
        for _ in range(3):
            response = tuple(map(int, random.integers(2, 50, random.integers(1, 4))))
            off = random.uniform(-4.2, -3.6, len(response)).astype(np.float32)
            steps.append(Step(prompt, response, off, "", "", "", None, ()))
            said = tuple(map(int, random.integers(2, 50, 2)))
            prompt = (*prompt, *response, *said) if growing else said
    weights = random.uniform(0.01, 0.02, len(steps))
    return Batch.of_steps(steps, random.normal(size=len(steps)), weights, trajectory=np.arange(18) // 3)


class Gradients:
    """Gradients of a loss at the weights of the tiny policy in float64, over the passes of an update."""

    def __init__(self, loss: Callable[..., Any]) -> None:
        self.model, self.loss = tiny_policy().model.double(), loss
        self.scorer = ResponseScorer(self.model)

    def scores(self, samples: Batch) -> Logprobs:
        """[tokens] from passes before the update."""
        found = np.zeros_like(samples.logprobs)
        owner = np.repeat(np.arange(len(samples)), samples.tokens)
        for part in passes(samples, LIMIT, "cpu"):
            some = part.rows
            assert some is not None
            with torch.no_grad():
                logprobs = self.scorer(part.responses, 1.0)[0].numpy()
            lengths = np.split(logprobs, samples.tokens[some].cumsum()[:-1])
            for row, values in zip(some, lengths, strict=True):
                found[owner == row] = values
        return found

    def __call__(
        self, samples: Batch, importance: TruncatedImportance | None = None, limit: int = LIMIT
    ) -> torch.Tensor:
        """All gradients in one row."""
        self.model.zero_grad()
        for part in passes(samples, limit, "cpu"):
            logprobs, _ = self.scorer(part.responses, 1.0)
            whole = completed(part.batch, logprobs.detach().numpy(), importance)
            self.loss(scored(whole, logprobs))[0].backward()
        return torch.cat([weight.grad.flatten() for weight in self.model.parameters()])


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert expected.norm() > 1e-3
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize(
    "loss",
    [
        clipped(0.2, 0.2, 0.0).loss,
        clipped(0.2, 0.2, 0.0, "turn").loss,
        algorithm(GSPO, clip_low=0.2, clip_high=0.2).loss,
    ],
)
def test_importance_weights_from_the_pass_are_those_of_a_pass_before(
    level: Literal["token", "sequence"], loss: Callable[..., Any]
) -> None:
    gradients, importance = Gradients(loss), TruncatedImportance(level, 1.5)
    samples = episodes(growing=False)
    scored = with_importance(samples, gradients.scores(samples), importance)
    assert (scored.advantages != samples.advantages).all()
    same(gradients(samples, importance), gradients(scored))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("growing", [True, False])
def test_sums_of_trajectories_from_the_pass_are_those_of_all_samples_in_one_pass(
    growing: bool, weighted: bool
) -> None:
    """Growing episodes are whole in their passes. The steps of the others are spread over several passes, and
    only those are scored before."""
    gradients = Gradients(clipped(0.2, 0.2, 0.0, "trajectory").loss)
    importance = TruncatedImportance("token", 1.5) if weighted else None
    samples, scored = episodes(growing), []

    def score(some: Batch) -> Logprobs:
        scored.append(len(some))
        return gradients.scores(some)

    ready = prepared(samples, list(pass_rows(samples.pairs, LIMIT)), score, importance)
    assert len(list(pass_rows(samples.pairs, LIMIT))) > 1
    assert scored == [0] if growing else scored[0] > 0
    unknown = replace(samples, trajectory_sums=np.full((len(samples), 4), np.nan))
    same(gradients(ready, importance), gradients(unknown, importance, limit=10_000))


def test_a_trajectory_is_split_if_two_passes_have_samples_of_it() -> None:
    numbers = np.array([7, 7, 2, 2, 2, 9])
    rows = [np.array([5, 0]), np.array([1]), np.array([4, 2, 3])]
    assert split_trajectories(numbers, rows).tolist() == [0, 1]
    assert split_trajectories(numbers, [np.arange(6)]).tolist() == []
    assert split_trajectories(np.zeros(0, np.int64), []).tolist() == []


@pytest.fixture(scope="module")
def learner() -> Learner:
    join_ranks(Ranks(), free_port())
    parts = [PolicyLoss(algorithm(GRPO, ratio="trajectory", importance="token"))]
    return Learner(tiny_policy().model, parts, AdamW(1e-3), Passing(1.0, LIMIT), Ranks())


def test_an_update_makes_no_pass_but_its_own(learner: Learner) -> None:
    """Growing episodes in one update, with both kinds of scores: as many passes of the layers as the packing
    has, each of prompts and of continuations."""
    samples, made = episodes(growing=True), []
    counting = learner.model.base_model.register_forward_hook(lambda *_: made.append(1))
    learner.update(samples)
    first = len(made)
    counting.remove()
    # The first update also compares the scorer with the model's own forward pass, on a few samples.
    made.clear()
    counting = learner.model.base_model.register_forward_hook(lambda *_: made.append(1))
    learner.update(samples)
    counting.remove()
    assert len(made) == 2 * len(list(pass_rows(samples.pairs, LIMIT))) < first


def test_later_updates_are_scored_before_the_first_and_keep_those_scores(learner: Learner) -> None:
    samples = episodes(growing=True)
    first, later = learner.prepare([samples, samples])
    (ratios,) = proximal_ratios([later])
    assert first is samples and later.proximal_logprobs is not None
    np.testing.assert_array_equal(later.proximal_logprobs, learner.scoring.logprobs(samples))
    np.testing.assert_allclose(ratios.tokens, later.proximal_logprobs - samples.logprobs, atol=1e-6)
    kept = completed(later, later.proximal_logprobs + 1, TruncatedImportance("token", 2.0))
    assert kept.proximal_logprobs is not None
    np.testing.assert_array_equal(kept.proximal_logprobs, later.proximal_logprobs)
    np.testing.assert_array_equal(kept.advantages, later.advantages)
