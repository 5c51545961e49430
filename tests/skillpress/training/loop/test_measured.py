"""Averages over minibatches: every mean divides by the weight of its own tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.loop.measured import Measured, mean_metrics

tokens = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 9)), max_size=5)
"""(weight, entropy) of the trained tokens of one minibatch."""


def measured(part: list[tuple[float, float]]) -> Measured:
    if not part:
        return Measured()
    weight, entropy = np.array(part).T
    return Measured(1.0, float(weight.sum()), {"entropy": float((weight * entropy).sum())}, 2.0)


@given(st.lists(tokens, min_size=1, max_size=6).filter(any))
def test_a_mean_over_tokens_is_the_weighted_mean_of_the_trained_ones(
    parts: list[list[tuple[float, float]]],
) -> None:
    metrics = mean_metrics([measured(part) for part in parts])
    weight, entropy = np.array([token for part in parts for token in part]).T
    assert metrics["entropy"] == pytest.approx(np.average(entropy, weights=weight))


def test_a_minibatch_without_samples_is_no_gradient_of_length_0() -> None:
    updates = [
        Measured(0.4, 1.0, {"entropy": 3.0}, 6.0),
        Measured(),
        Measured(0.2, 0.5, {"entropy": 0.0}, 2.0),
    ]
    metrics = mean_metrics(updates)
    assert metrics["gradient_norm"] == 4.0
    assert metrics["loss"] == pytest.approx(0.2), "what was left out has a loss, and it is 0"


def test_what_nothing_was_counted_for_is_left_out() -> None:
    assert mean_metrics([Measured(), Measured()]) == {"loss": 0.0}
    assert "gradient_norm" not in mean_metrics([Measured(0.4, 1.0, {"entropy": 3.0}, None)])
