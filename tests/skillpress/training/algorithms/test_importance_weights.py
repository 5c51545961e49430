"""Truncated importance weights: their values, the bias they correct, and the effect of the cap."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.importance_weights import TruncatedImportance
from tests.support.training.batches import GRPO, algorithm

FAR = 1e12
"""A cap that no ratio reaches."""

responses = st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=6), min_size=1, max_size=6)
levels = st.sampled_from(["token", "sequence"])


def flat(rows: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for row in rows for value in row]), np.array([len(row) for row in rows])


def test_two_responses_by_hand() -> None:
    """Ratios 2, 1/2 and 3, 2: their products are 1 and 6."""
    logs, lengths = np.log([2.0, 0.5, 3.0, 2.0]), np.array([2, 2])
    np.testing.assert_allclose(TruncatedImportance("token", 2.5)(logs, lengths), [2, 0.5, 2.5, 2])
    np.testing.assert_allclose(TruncatedImportance("sequence", 2.5)(logs, lengths), [1, 1, 2.5, 2.5])
    assert TruncatedImportance("token", 2.5).truncated(logs, lengths).tolist() == [False, False, True, False]
    assert TruncatedImportance("sequence", 2.5).truncated(logs, lengths).tolist() == [
        False,
        False,
        True,
        True,
    ]


@given(responses, levels, st.floats(1, 10))
def test_weights_are_positive_never_above_the_cap_and_the_ratio_itself_below_it(
    rows: list[list[float]], level: str, cap: float
) -> None:
    logs, lengths = flat(rows)
    weights, truncated = (
        made(logs, lengths)
        for made in (TruncatedImportance(level, cap), TruncatedImportance(level, cap).truncated)
    )
    assert (weights > 0).all() and (weights <= cap * (1 + 1e-12)).all()
    ratios = TruncatedImportance(level, FAR)(logs, lengths)
    np.testing.assert_allclose(weights[~truncated], ratios[~truncated])
    assert (ratios[truncated] > cap * (1 - 1e-12)).all()


@given(responses, levels)
def test_an_engine_that_agrees_to_the_bit_gets_weights_of_exactly_one(
    rows: list[list[float]], level: str
) -> None:
    logs, lengths = flat(rows)
    assert (TruncatedImportance(level, 2.0)(logs * 0, lengths) == 1).all()


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.floats(1, 10))
def test_for_responses_of_one_token_both_levels_are_the_same(logs: list[float], cap: float) -> None:
    values, lengths = flat([[value] for value in logs])
    both = [TruncatedImportance(level, cap)(values, lengths) for level in ("token", "sequence")]
    np.testing.assert_array_equal(*both)


@given(responses)
def test_all_tokens_of_a_response_share_its_sequence_weight(rows: list[list[float]]) -> None:
    logs, lengths = flat(rows)
    weights = TruncatedImportance("sequence", 2.0)(logs, lengths)
    for part in np.split(weights, np.cumsum(lengths)[:-1]):
        assert len(set(part.tolist())) == 1


def test_untruncated_sequence_weights_make_every_expectation_the_learners() -> None:
    """Enumerated for two tokens of three words, where the second's distribution depends on the first."""
    random = np.random.default_rng(0)
    first, then = random.dirichlet(np.ones(3), 2), random.dirichlet(np.ones(3), (2, 3))
    value = random.normal(size=(3, 3))
    total = {"engine, weighted": 0.0, "learner": 0.0}
    for a, b in product(range(3), repeat=2):
        engine, learner = (first[who, a] * then[who, a, b] for who in (0, 1))
        logs = np.log([first[1, a] / first[0, a], then[1, a, b] / then[0, a, b]])
        weight = TruncatedImportance("sequence", FAR)(logs, np.array([2]))[0]
        total["engine, weighted"] += engine * weight * value[a, b]
        total["learner"] += learner * value[a, b]
    assert total["engine, weighted"] == pytest.approx(total["learner"])


def test_the_section_names_the_level_and_none_asks_for_no_scores_of_the_learner() -> None:
    assert algorithm(GRPO).importance_weights is None
    asked = algorithm(GRPO, importance="sequence", importance_cap=3.0).importance_weights
    assert asked == TruncatedImportance("sequence", 3.0)
