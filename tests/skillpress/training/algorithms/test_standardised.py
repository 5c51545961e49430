"""The standardised scores of a group, which GRPO (scaled), GSPO and CISPO share, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.algorithms.batch import one_process
from tests.support.training.batches import CISPO, GRPO, GSPO, algorithm, of_returns, per_trajectory

SECTIONS = [{**GRPO, "scale": "std"}, GSPO, CISPO]
GROUP = st.lists(st.tuples(st.floats(-10, 10), st.integers(1, 5)), min_size=2, max_size=8)


def advantages(section: dict, returns, lengths) -> np.ndarray:
    played = of_returns(returns, [0] * len(returns), lengths)
    return per_trajectory(algorithm(section).advantages(played, one_process), played)


EACH = pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section["name"])


@EACH
@given(GROUP)
def test_a_score_less_the_groups_mean_over_its_deviation(section: dict, rollouts) -> None:
    returns, lengths = zip(*rollouts, strict=True)
    expected = (np.array(returns) - np.mean(returns)) / (np.std(returns, ddof=1) + 1e-6)
    np.testing.assert_allclose(advantages(section, returns, lengths), expected, rtol=1e-6, atol=1e-4)


@EACH
@given(GROUP, st.floats(-10, 10))
def test_a_shift_of_all_rewards_changes_nothing(section: dict, rollouts, shift: float) -> None:
    returns, lengths = zip(*rollouts, strict=True)
    moved = advantages(section, [value + shift for value in returns], lengths)
    np.testing.assert_allclose(moved, advantages(section, returns, lengths), atol=1e-4)


@EACH
@given(GROUP, st.randoms(use_true_random=False))
def test_permuting_a_group_permutes_its_advantages(section: dict, rollouts, random) -> None:
    order = random.sample(range(len(rollouts)), len(rollouts))
    returns, lengths = zip(*rollouts, strict=True)
    found = advantages(section, [returns[at] for at in order], [lengths[at] for at in order])
    np.testing.assert_allclose(found, advantages(section, returns, lengths)[order], atol=1e-4)


@EACH
@given(st.floats(-10, 10), st.lists(st.integers(1, 5), min_size=1, max_size=7))
def test_equal_returns_teach_exactly_nothing(section: dict, value: float, lengths: list[int]) -> None:
    assert (advantages(section, [value] * len(lengths), lengths) == 0).all()
