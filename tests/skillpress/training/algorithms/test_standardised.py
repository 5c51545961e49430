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
