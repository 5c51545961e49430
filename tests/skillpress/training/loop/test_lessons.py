"""Updates on lessons and samples, compared with plain torch, and the passes of lessons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step
from skillpress.models.policy import token_scores
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.training.algorithms.batch import Batch
from skillpress.training.experience.erl import ERLParameters
from skillpress.training.loop.lessons import Lessons, kl_of, lessons_of
from skillpress.training.loop.model_pass import weightless
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.update import Update
from tests.support import nursery
from tests.support.models.tiny import tiny_policy
from tests.support.programs import PROGRAMS

PROGRAM = PROGRAMS / "lesson_program.py"
CPU = torch.device("cpu")


def trained(tmp_path: Path, configuration: str, processes: int, *options: str) -> dict[str, torch.Tensor]:
    output = tmp_path / f"{configuration}-{processes}-{'-'.join(options)}.pt"
    finished = nursery.run(PROGRAM, configuration, str(processes), str(output), *options)
    assert finished.returncode == 0, finished.stderr[-2000:]
    weights: dict[str, torch.Tensor] = torch.load(output)
    return weights


@pytest.mark.parametrize(
    ("configuration", "processes", "options"),
    [
        pytest.param("zero1_fp32", 2, ("uneven",), marks=pytest.mark.thorough),
        pytest.param("zero1_fp32", 1, ("distill",), marks=pytest.mark.thorough),
        pytest.param("zero2_fp32", 2, ("checkpointing",), marks=pytest.mark.thorough),
        pytest.param("zero3_fp32", 2, (), marks=pytest.mark.thorough),
        pytest.param("zero3_fp32", 2, ("uneven", "distill"), marks=pytest.mark.slow),
    ],
)
def test_samples_and_lessons_are_learned_together_as_plain_torch_does_it(
    configuration: str, processes: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The division over ranks does not matter: a rank without lessons makes as many passes as one with
    lessons."""
    loss = ("distill",) if "distill" in options else ()
    expected = trained(tmp_path, "plain", 1, *loss)
    for name, found in trained(tmp_path, configuration, processes, *options).items():
        torch.testing.assert_close(found, expected[name], atol=1e-4, rtol=1e-3, msg=name)


def lesson(plain: tuple[int, ...], above: tuple[int, ...], response: tuple[int, ...]) -> Step:
    return Step(
        (*above, *plain), response, (-1.0,) * len(response), "", "", "", None, (), plain_prompt_ids=plain
    )


TAUGHT = (
    lesson((3, 4), (9, 8), (5, 6, 7)),
    lesson((3, 4), (9,), (10,)),
    lesson((5,), (2, 2, 2), (11, 12)),
    lesson((3, 4), (9, 8), (6, 6, 6, 6)),
)
LESSONS = lessons_of(TAUGHT, np.array([0.1, 0.2, 0.3, 0.4]))
UPDATE = Update(Batch.of_steps(()), LESSONS)


def taught_by(distill: float, kl: float, most: int = 1000) -> Lessons:
    """The part whose passes have at most so many response tokens."""
    method = ERLParameters(name="erl", distill=distill, kl=kl, retries=1, reflection="own")
    return Lessons(method, token_scores.CHUNK_LOGITS // most)


def scoring_of(score: ResponseScorer) -> ScoringPasses:
    return ScoringPasses(score, 1.0, 1000, CPU)


def loss_and_gradients(
    scorer: type[ResponseScorer | PackedScorer],
    token_limit: int,
    most: int,
    coefficients: tuple[float, float],
) -> tuple[float, dict[str, torch.Tensor]]:
    policy = tiny_policy()
    score, total = scorer(policy.model), 0.0
    scoring = ScoringPasses(score, 1.0, token_limit, CPU, score.shares_prompts)
    part = taught_by(*coefficients, most)
    for each in part.passes(UPDATE, scoring):
        loss, _ = part.loss(each, UPDATE, scoring)
        loss.backward()
        total += float(loss.detach())
    found = {name: weight.grad for name, weight in policy.model.named_parameters() if weight.grad is not None}
    return total, found


@pytest.mark.parametrize("scorer", [ResponseScorer, PackedScorer])
@pytest.mark.parametrize(("token_limit", "most"), [(1000, 1000), (8, 1000), (1000, 1), (10, 3)])
def test_every_split_into_passes_and_both_scorers_give_the_same_loss_and_gradient(
    scorer: type[ResponseScorer | PackedScorer], token_limit: int, most: int
) -> None:
    loss, gradients = loss_and_gradients(scorer, token_limit, most, (0.5, 2.0))
    expected, by_hand = by_the_models_own_pass(0.5, 2.0)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert gradients.keys() == by_hand.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, by_hand[name], atol=1e-6, rtol=1e-4, msg=name)


def by_the_models_own_pass(alpha: float, eta: float) -> tuple[float, dict[str, torch.Tensor]]:
    """The formula by autograd, sample by sample, with each sequence whole and alone."""
    policy = tiny_policy()
    total = torch.zeros(())
    for step, weight in zip(TAUGHT, LESSONS.weights, strict=True):
        both = []
        for prompt in (step.plain_prompt_ids or (), step.prompt_ids):
            logits = policy.model(torch.tensor([prompt + step.response_ids])).logits
            both.append(torch.log_softmax(logits[0, len(prompt) - 1 : -1], -1))
        plain, held = both[0], both[1].detach()
        for place, token in enumerate(step.response_ids):
            divergence = (held[place].exp() * (held[place] - plain[place])).sum()
            total = total + weight * (eta * divergence - alpha * plain[place, token])
    total.backward()
    found = {name: weight.grad for name, weight in policy.model.named_parameters() if weight.grad is not None}
    return float(total.detach()), found


def test_no_pass_has_more_response_tokens_than_it_may_and_every_lesson_is_in_one() -> None:
    batches = taught_by(1.0, 1.0, 4).passes(UPDATE, scoring_of(ResponseScorer(tiny_policy().model)))
    counts = [len(batch.responses.targets) for batch in batches]
    assert max(counts) <= 4 and sum(counts) == 10
    for batch in batches:
        assert batch.given is not None and torch.equal(batch.responses.targets, batch.given.targets)
    assert sorted(token for batch in batches for token in batch.responses.targets.tolist()) == sorted(
        token for step in TAUGHT for token in step.response_ids
    )


def test_a_pass_that_only_keeps_step_with_other_ranks_teaches_nothing() -> None:
    policy = tiny_policy()
    scoring = scoring_of(ResponseScorer(policy.model))
    loss, metrics = taught_by(1.0, 1.0).loss(weightless(CPU), UPDATE, scoring)
    loss.backward()
    assert float(loss) == 0 and float(metrics["lesson/tokens"]) == 0 == float(metrics["lesson/weight"])
    assert all(weight.grad is None or not weight.grad.any() for weight in policy.model.parameters())


def test_where_knowledge_changes_nothing_the_kl_is_zero_and_so_is_its_gradient() -> None:
    policy = tiny_policy()
    same = Update(UPDATE.samples, lessons_of([lesson((3, 4), (), (5, 6))], np.ones(1)))
    part, scoring = taught_by(0.0, 1.0), scoring_of(ResponseScorer(policy.model))
    (each,) = part.passes(same, scoring)
    loss, metrics = part.loss(each, same, scoring)
    loss.backward()
    assert abs(float(metrics["lesson/kl"])) < 1e-6
    assert all(weight.grad is None or weight.grad.abs().max() < 1e-6 for weight in policy.model.parameters())


@given(st.integers(2, 6), st.integers(0, 1000))
def test_the_exact_kl_is_the_mean_log_ratio_of_tokens_drawn_from_the_first(words: int, seed: int) -> None:
    """The estimator from one sample, averaged with each sample's probability."""
    random = np.random.default_rng(seed)
    first, second = (torch.log_softmax(torch.tensor(random.normal(size=(3, words))), -1) for _ in range(2))
    exact = kl_of(first, second)
    for row in range(3):
        mean = sum(
            float(first[row, word].exp() * (first[row, word] - second[row, word])) for word in range(words)
        )
        assert float(exact[row]) == pytest.approx(mean) and mean >= -1e-12
