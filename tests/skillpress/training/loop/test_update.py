"""The parts of a learner's updates: what each brings is added, and what no part is there for is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.experience.erl import ERLParameters
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.lessons import Lessons, lessons_of
from skillpress.training.loop.measured import Measured
from skillpress.training.loop.model_pass import Pass
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.update import Terms, Update, UpdatePart
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import clipped, steps_of_three_tokens

POLICY = PolicyLoss(clipped(0.2, 0.2, 0.0))
STEPS = steps_of_three_tokens()


def samples() -> Batch:
    return Batch.of_steps(STEPS, np.ones(len(STEPS)), np.full(len(STEPS), 0.1))


class Surprise(UpdatePart):
    """A new part, which passes the samples once more. Its loss is the surprise at their tokens."""

    def passes(self, update: Update, scoring: ScoringPasses) -> list[Pass]:
        return scoring.passes(update.samples)

    def loss(self, each: Pass, update: Update, scoring: ScoringPasses) -> Terms:
        logprobs, *_ = scoring(each)
        surprise = -0.1 * logprobs.sum()
        return surprise, {"surprise": surprise.detach()}


def updated(parts: Sequence[UpdatePart], batch: Batch) -> tuple[dict[str, torch.Tensor], Measured]:
    """The weights after one update of a fresh learner in small passes, and what it measured."""
    join_ranks(Ranks(), free_port())
    learner = Learner(tiny_policy().model, parts, AdamW(1e-2), Passing(1.0, 12), Ranks())
    learner.begin_step(1)
    measured = learner.update(batch)
    return learner.weights(), measured


def test_a_part_that_defines_nothing_changes_nothing() -> None:
    (weights, measured), (same, again) = (
        updated(parts, samples()) for parts in ([POLICY], [UpdatePart(), POLICY])
    )
    assert measured == again and measured.optimized
    assert all(torch.equal(weights[name], same[name]) for name in weights)


def test_losses_and_metrics_of_all_parts_add_up() -> None:
    """A part of the reader's own needs no other file: its passes follow those of the parts before it."""
    _, policy = updated([POLICY], samples())
    _, alone = updated([Surprise()], samples())
    _, both = updated([POLICY, Surprise()], samples())
    assert both.loss == pytest.approx(policy.loss + alone.loss, rel=1e-5)
    assert both.sums == pytest.approx({**policy.sums, **alone.sums}, rel=1e-5)
    assert alone.weight == 0 < both.weight, "only the policy's tokens are counted"


def test_a_part_without_passes_is_not_due_and_without_any_there_is_no_update() -> None:
    method = ERLParameters(name="erl", distill=1.0, kl=0.0, retries=1, reflection="own")
    lessons = Lessons(method, 60)
    weights, measured = updated([POLICY, lessons], samples().cut(np.zeros(0, np.int64)))
    assert measured == Measured() and not measured.optimized
    start = tiny_policy().model.state_dict()
    assert all(torch.equal(weight, start[name]) for name, weight in weights.items())


def test_lessons_without_a_part_that_learns_them_are_refused() -> None:
    join_ranks(Ranks(), free_port())
    learner = Learner(tiny_policy().model, [POLICY], AdamW(1e-2), Passing(1.0, 12), Ranks())
    with pytest.raises(ValueError, match="no part of the learner is Lessons"):
        learner.update(samples(), lessons_of(STEPS, np.full(len(STEPS), 0.1)))
