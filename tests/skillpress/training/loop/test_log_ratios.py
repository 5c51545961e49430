"""Engine, learner and reference on the same responses, with a real learner around a tiny policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from skillpress.core.trajectory import Step
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.algorithms.importance_weights import TruncatedImportance
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.log_ratios import importance_metrics, proximal_ratios
from skillpress.training.loop.mismatch import MismatchCheck, MismatchError
from skillpress.training.loop.model_pass import scored
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.own_scores import with_importance
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.reference import Reference
from skillpress.training.loop.scoring_passes import ScoringPasses
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import clipped
from tests.support.training.scored import scored as tokens_of

TEMPERATURE = 0.7


@pytest.fixture(scope="module")
def learner() -> Learner:
    """A learner at its start weights, with at most twenty tokens per pass."""
    join_ranks(Ranks(), free_port())
    model = tiny_policy().model
    parts = [PolicyLoss(clipped(0.2, 0.2, 0.1)), Reference(model)]
    return Learner(model, parts, AdamW(1e-2), Passing(TEMPERATURE, 20), Ranks())


@pytest.fixture(scope="module")
def steps() -> tuple[Step, ...]:
    """Steps as sampled at the start weights by an engine that rounds like the learner."""
    random = np.random.default_rng(0)
    made = []
    for _ in range(70):
        prompt, response = (tuple(map(int, random.integers(2, 50, random.integers(1, 6)))) for _ in range(2))
        packed = pack_responses([(prompt, response)])
        with torch.no_grad():
            logprobs, _ = ResponseScorer(tiny_policy().model)(packed, TEMPERATURE)
        made.append(Step(prompt, response, tuple(logprobs.tolist()), "", "", "", None, ()))
    return tuple(made)


def samples(steps: tuple[Step, ...]) -> Batch:
    return Batch.of_steps(steps, np.linspace(-1, 1, len(steps)), np.ones(len(steps)))


def shifted(step: Step, nats: float) -> Step:
    """The step as reported by an engine that is surer of every token by so many nats."""
    return replace(step, logprobs=step.logprobs + np.float32(nats))


def test_the_learners_scores_and_the_references_are_the_models_own(
    learner: Learner, steps: tuple[Step, ...]
) -> None:
    own = learner.scoring.logprobs(samples(steps))
    (scored,) = learner.prepare([samples(steps)])
    assert scored.reference_logprobs is not None
    np.testing.assert_allclose(own, np.concatenate([step.logprobs for step in steps]), atol=1e-5)
    np.testing.assert_array_equal(own, scored.reference_logprobs, "the same passes, the same bits")


def test_scores_stay_with_their_samples(learner: Learner, steps: tuple[Step, ...]) -> None:
    (scored,) = learner.prepare([samples(steps)])
    rows = np.array([5, 0, 41])
    few = scored.cut(rows)
    expected = np.concatenate([steps[row].logprobs for row in rows])
    assert few.reference_logprobs is not None
    np.testing.assert_allclose(few.reference_logprobs, expected, atol=1e-5)


def test_a_loss_with_a_kl_term_refuses_samples_that_the_reference_has_not_scored(
    learner: Learner, steps: tuple[Step, ...]
) -> None:
    with pytest.raises(ValueError, match="reference_logprobs must be given"):
        learner.update(samples(steps[:3]))


def compared(
    learner: Learner, steps: Sequence[Step], check: MismatchCheck, step: int = 1
) -> dict[str, float]:
    """What the check says of the learner's scores of all steps."""
    found = replace(samples(tuple(steps)), age=np.zeros(len(steps), np.int64))
    return check(found, learner.scoring.logprobs(found), step)


CHECK = MismatchCheck(Ranks(), limit=0.01, exact=True)


def test_an_engine_that_agrees_passes_and_its_differences_are_rounding(
    learner: Learner, steps: tuple[Step, ...]
) -> None:
    metrics = compared(learner, steps, CHECK)
    assert 0 <= metrics["mismatch/mean"] <= metrics["mismatch/largest"] < 1e-5
    ratios = [value for name, value in metrics.items() if "ratio" in name]
    assert len(ratios) == 6 and ratios == pytest.approx([1.0] * 6, abs=1e-4)


def test_an_engine_that_is_half_a_nat_off_ends_the_training_with_the_measured_value(
    learner: Learner, steps: tuple[Step, ...]
) -> None:
    wrong = tuple(shifted(step, 0.5) for step in steps)
    with pytest.raises(
        MismatchError, match=r"mismatch_limit is 0\.01.*step 3 .*0\.5 nats.*over 70 responses"
    ):
        compared(learner, wrong, CHECK, 3)
    broken = tuple(shifted(step, float("nan")) for step in steps)
    with pytest.raises(MismatchError, match="nan nats"):
        compared(learner, broken, CHECK, 3)


def test_responses_of_older_weights_are_not_compared_and_without_others_there_is_nothing_to_say(
    learner: Learner, steps: tuple[Step, ...]
) -> None:
    wrong = tuple(shifted(step, float(row == 3)) for row, step in enumerate(steps))
    old = replace(samples(wrong), age=(np.arange(len(steps)) == 3).astype(np.int64))
    assert CHECK(old, learner.scoring.logprobs(old), 1)["mismatch/largest"] < 1e-5
    older = replace(old, age=np.ones(len(steps), np.int64))
    assert CHECK(older, learner.scoring.logprobs(older), 1) == {}
    assert compared(learner, (), CHECK) == {}


def test_an_update_is_compared_before_it_changes_a_weight(learner: Learner, steps: tuple[Step, ...]) -> None:
    """The scores are those of the update's own passes, in the order of its samples."""
    (batch,) = learner.prepare([samples(steps[:9])])
    before = learner.weights()["model.embed_tokens.weight"].clone()
    told: list[np.ndarray] = []

    def refuse(of: Batch, logprobs: np.ndarray) -> None:
        assert of is batch
        told.append(logprobs)
        raise MismatchError("no")

    with pytest.raises(MismatchError):
        learner.update(batch, compare=refuse)
    np.testing.assert_array_equal(told[0], learner.scoring.logprobs(batch), "passes of the same samples")
    assert torch.equal(learner.weights()["model.embed_tokens.weight"], before)


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_an_engine_that_is_too_sure_has_its_advantages_scaled_down_and_ratios_are_taken_against_the_learner(
    learner: Learner, steps: tuple[Step, ...], level: str
) -> None:
    """The engine is surer by log 2 at every token: token weights are 1/2, and a response's weight is 1/2 to
    the power of its length."""
    surer = samples(tuple(shifted(step, float(np.log(2))) for step in steps))
    importance = TruncatedImportance(level, 2.0)
    found = with_importance(surer, learner.scoring.logprobs(surer), importance)
    metrics = importance_metrics(proximal_ratios([found]), importance, Ranks())
    batch = scored(found, torch.zeros(len(found.logprobs)))
    lengths = np.array([len(step.response_ids) for step in steps])
    each = 0.5 ** (lengths if level == "sequence" else np.ones(len(steps)))
    np.testing.assert_allclose(batch.advantages, surer.advantages * np.repeat(each, lengths), rtol=1e-4)
    np.testing.assert_allclose(batch.old_logprobs, np.concatenate([s.logprobs for s in steps]), atol=1e-5)
    assert metrics["importance/truncated"] == 0
    assert metrics["importance/token_ratio_p50"] == pytest.approx(0.5, rel=1e-4)
    assert metrics["importance/sequence_ratio_p01"] == pytest.approx(0.5**5, rel=1e-3)


def test_an_engine_that_is_less_sure_is_cut_at_the_cap(learner: Learner, steps: tuple[Step, ...]) -> None:
    unsure = samples(tuple(shifted(step, -float(np.log(8))) for step in steps))
    importance = TruncatedImportance("token", 2.0)
    found = with_importance(unsure, learner.scoring.logprobs(unsure), importance)
    metrics = importance_metrics(proximal_ratios([found]), importance, Ranks())
    assert metrics["importance/truncated"] == 1
    np.testing.assert_allclose(found.advantages, 2 * unsure.advantages, rtol=1e-4)


def test_weighting_advantages_is_weighting_the_surrogate() -> None:
    """omega min(rho A, clip(rho) A) = min(rho omega A, clip(rho) omega A), term by term."""
    random = torch.Generator().manual_seed(0)
    logprobs, old, advantages = (torch.randn(200, generator=random) for _ in range(3))
    weights = torch.rand(200, generator=random) + 0.1
    loss = clipped(0.2, 0.3, 0.0).loss
    inside, _ = loss(tokens_of(logprobs, old, weights * advantages, torch.ones(200)))
    outside, _ = loss(tokens_of(logprobs, old, advantages, weights))
    torch.testing.assert_close(inside, outside)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("stays", [False, True])
def test_a_reference_stays_on_a_gpu_or_is_lent_to_it_from_pinned_memory(
    steps: tuple[Step, ...], stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpress.training.loop.reference.stays_on_gpu", lambda *_: stays)
    join_ranks(Ranks(), free_port())
    model = tiny_policy().model
    expected = Reference(model).prepare([samples(steps)], scoring_on(model, "cpu"))
    torch.nn.Module.to(model, "cuda")
    reference = Reference(model)
    weights = [*reference._scorer.parameters()]
    assert all(weight.is_cuda if stays else weight.is_pinned() for weight in weights)
    places = [weight.data_ptr() for weight in weights]
    found = reference.prepare([samples(steps)], scoring_on(model, "cuda"))
    ours, theirs = (each[0].reference_logprobs for each in (found, expected))
    assert ours is not None and theirs is not None
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert [weight.data_ptr() for weight in weights] == places


def scoring_on(model: PreTrainedModel, device: str) -> ScoringPasses:
    return ScoringPasses(ResponseScorer(model), TEMPERATURE, 20, device)
