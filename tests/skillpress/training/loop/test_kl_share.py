"""The KL term on a share of the sequences: over all draws its mean is the whole term, gradients included."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import ceil, comb
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from skillpress.core.chains import Pair, Pairs
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Step
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.algorithm import ScoredTokens
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.kl_share import factors_of, kl_factors, units
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.measured import Measured, mean_metrics
from skillpress.training.loop.minibatches import with_advantage
from skillpress.training.loop.model_pass import passes, scored
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.reference import Reference
from tests.support.models.tiny import tiny_policy
from tests.support.training.batches import (
    CISPO,
    EXPERT_ITERATION,
    GRPO,
    GSPO,
    REINFORCE_PP,
    algorithm,
    clipped,
)

PAIRS: list[Pair] = [
    ((1, 2, 3), (4, 5)),  # an episode of two steps, the second of which extends the first
    ((1, 2, 3, 4, 5, 6), (7,)),
    ((1, 2, 3), (8, 9, 4)),  # another rollout of the same task
    ((5, 6), (2, 3)),
    ((7,), (1, 2, 3)),
    ((5, 6), (4,)),
    ((9, 9), (1,)),
]
UNITS = [0, 0, 0, 1, 2, 1, 3]
"""The unit of each pair, written by hand: sequences that begin with the same prompt are one unit."""


def samples_of(pairs: list[Pair], advantages: np.ndarray) -> Batch:
    """Samples with random log-probabilities and weights that differ."""
    random = np.random.default_rng(0)
    steps = [
        Step(prompt, response, tuple(random.uniform(-3, 0, len(response))), "", "", "", None, ())
        for prompt, response in pairs
    ]
    return Batch.of_steps(steps, advantages, random.uniform(0.5, 1.5, len(pairs)))


def test_sequences_that_begin_alike_are_one_unit_and_so_are_steps_that_extend_one_another() -> None:
    assert units(Pairs.of(PAIRS)).tolist() == UNITS
    assert len(units(Pairs.of([]))) == 0 and len(kl_factors(Pairs.of([]), 0.5, generator(0))) == 0


def double(tokens: ScoredTokens, **changes: Any) -> ScoredTokens:
    """The same tokens in float64, with some fields changed."""
    fields = {name: value for name, value in vars(tokens).items() if isinstance(value, torch.Tensor)}
    wide = {name: value.double() for name, value in fields.items() if value.is_floating_point()}
    return replace(tokens, **{**wide, **changes})


@pytest.mark.parametrize("drawn", [1, 2, 3, 4])
@pytest.mark.parametrize("section", [GRPO, GSPO, CISPO, REINFORCE_PP, EXPERT_ITERATION])
def test_the_mean_over_all_draws_is_the_whole_term_with_its_gradient(
    section: dict[str, Any], drawn: int
) -> None:
    """Exactly, by enumerating every subset of ``drawn`` units; NaN where the reference scored nothing."""
    loss = algorithm(section, kl_coefficient=0.3).loss
    samples = samples_of(PAIRS, np.linspace(-1, 1, len(PAIRS)))
    random = np.random.default_rng(1)
    logprobs, reference = random.uniform(-3, 0, (2, int(samples.tokens.sum())))
    owner = np.repeat(np.arange(len(PAIRS)), samples.tokens)

    def found(factors: np.ndarray | None) -> np.ndarray:
        """The loss, the term and the gradient of each token."""
        seen = reference if factors is None else np.where(factors[owner] > 0, reference, np.nan)
        tokens = scored(replace(samples, reference_logprobs=seen, kl_factors=factors), torch.tensor(logprobs))
        current = torch.tensor(logprobs, requires_grad=True)
        total, metrics = loss(double(tokens, logprobs=current, reference_logprobs=torch.tensor(seen)))
        total.backward()
        assert current.grad is not None
        return np.array([float(total.detach()), float(metrics["reference_kl"]), *current.grad.tolist()])

    draws = [factors_of(np.array(UNITS), np.array(some), 4) for some in combinations(range(4), drawn)]
    assert len(draws) == comb(4, drawn)
    estimates = np.array([found(factors) for factors in draws])
    np.testing.assert_allclose(estimates.mean(axis=0), found(None), rtol=1e-6, atol=1e-7)
    if drawn < 4:
        assert estimates[:, 0].std() > 1e-3, "one draw alone is an estimate"


@settings(max_examples=50)
@given(share=st.floats(0.01, 1), seed=st.integers(0, 2**32))
def test_the_drawn_units_are_the_share_rounded_up_and_their_factor_is_one_over_their_probability(
    share: float, seed: int
) -> None:
    factors = kl_factors(Pairs.of(PAIRS), share, generator(seed))
    for unit in range(4):
        assert len(set(factors[np.array(UNITS) == unit])) == 1, "a unit is drawn as a whole"
    drawn = {UNITS[row] for row in np.flatnonzero(factors)}
    assert len(drawn) == ceil(round(4 * share, 9))
    assert set(factors) <= {0.0, 4 / len(drawn)}
    np.testing.assert_array_equal(factors, kl_factors(Pairs.of(PAIRS), share, generator(seed)))


def test_seven_hundredths_of_a_hundred_are_seven_although_the_product_is_larger() -> None:
    assert 0.07 * 100 > 7
    factors = kl_factors(Pairs.of([((number,), (1,)) for number in range(100)]), 0.07, generator(0))
    assert np.count_nonzero(factors) == 7


def test_every_subset_is_drawn_equally_often() -> None:
    """Six subsets of two of four units in 3,000 seeds: 500 each, within five standard deviations (102)."""
    pairs = Pairs.of(PAIRS)
    drawn = [tuple(np.flatnonzero(kl_factors(pairs, 0.5, generator(seed)))) for seed in range(3000)]
    counts = np.unique(np.array([hash(rows) for rows in drawn]), return_counts=True)[1]
    assert len(counts) == 6 and abs(counts - 500).max() < 102


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01, float("nan")])
def test_a_share_outside_0_and_1_is_refused(share: float) -> None:
    with pytest.raises(ValidationError, match="kl_share"):
        algorithm(GRPO, kl_share=share)


def test_a_step_teaches_everywhere_only_if_the_kl_term_is_everywhere() -> None:
    assert algorithm(GRPO, kl_coefficient=0.1).teaches_everywhere
    assert not algorithm(GRPO, kl_coefficient=0.1, kl_share=0.5).teaches_everywhere
    samples = samples_of(PAIRS, np.array([0, 0, 1, 0, 0, 0, 0.0]))
    some = replace(samples, kl_factors=np.array([0, 0, 0, 0, 2, 0, 2.0]))
    assert with_advantage(samples, False).tolist() == [2]
    assert with_advantage(some, False).tolist() == [2, 4, 6]


def test_the_mean_kl_divides_by_the_weights_of_the_tokens_that_the_reference_scored() -> None:
    """Half the weight was drawn, each twice: 0.8 and 0.4 of KL over weights of 1."""
    first = Measured(1.0, 0.7, {"reference_kl": 0.8, "entropy": 1.4}, 2.0, reference_weight=1.0)
    second = Measured(1.0, 0.3, {"reference_kl": 0.4, "entropy": 0.6}, 2.0, reference_weight=1.0)
    metrics = mean_metrics([first, second])
    assert metrics["reference_kl"] == pytest.approx(0.6) and metrics["entropy"] == pytest.approx(2.0)


@pytest.fixture(scope="module")
def learner() -> Learner:
    join_ranks(Ranks(), free_port())
    model = tiny_policy().model
    parts = [PolicyLoss(clipped(0.2, 0.2, 0.5)), Reference(model)]
    return Learner(model, parts, AdamW(1e-2), Passing(1.0, 20), Ranks())


def test_the_reference_scores_what_is_drawn_and_nothing_else(learner: Learner) -> None:
    samples = samples_of(PAIRS, np.ones(len(PAIRS)))
    (whole,) = learner.prepare([samples])
    factors = np.array([0, 0, 2, 2, 0, 0, 0.0])
    (some,) = learner.prepare([replace(samples, kl_factors=factors)])
    assert whole.reference_logprobs is not None and some.reference_logprobs is not None
    drawn = np.repeat(factors > 0, samples.tokens)
    np.testing.assert_allclose(some.reference_logprobs[drawn], whole.reference_logprobs[drawn], atol=1e-5)
    assert np.isnan(some.reference_logprobs[~drawn]).all()


def gradients(samples: Batch) -> dict[str, torch.Tensor]:
    """Gradients of a loss with a KL term at the weights of the tiny policy, by passes of their own."""
    model = tiny_policy().model
    scorer, loss = ResponseScorer(model), clipped(0.2, 0.2, 0.5).loss
    for part in passes(samples, 20, "cpu"):
        total, _ = loss(scored(part.batch, scorer(part.responses, 1.0)[0]))
        total.backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def shifted(part: Batch) -> Batch:
    """The samples with a reference that is less sure of every token, so that the KL term has a gradient."""
    assert part.reference_logprobs is not None
    return replace(part, reference_logprobs=part.reference_logprobs - np.float32(0.5))


def test_samples_that_are_neither_drawn_nor_have_an_advantage_change_no_gradient(learner: Learner) -> None:
    samples = samples_of(PAIRS, np.array([0, 0, 1, 0, 0, 0, -1.0]))
    samples = replace(samples, kl_factors=np.array([2, 2, 2, 0, 0, 0, 0.0]))
    whole, few = learner.prepare([samples, samples.cut(with_advantage(samples, False))])
    assert len(whole) == 7 and len(few) == 4
    found = [gradients(shifted(part)) for part in (whole, few)]
    assert found[0] and found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][name], atol=1e-6, rtol=1e-5)
