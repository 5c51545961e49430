"""Wilson's interval against scipy's, which is an independent implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from skillpress.evaluation.intervals import wilson


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_agrees_with_scipy(counts):
    successes, trials = counts
    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    found = wilson(successes / trials, trials)
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)


def test_the_papers_best_countdown_result_is_known_to_two_and_a_half_points():
    interval = wilson(0.8037, 1024)  # Table 1, 1024 test instances
    assert interval.low == pytest.approx(0.778, abs=1e-3)
    assert interval.high == pytest.approx(0.827, abs=1e-3)


@pytest.mark.parametrize(("share", "trials"), [(0.5, 0), (1.2, 10), (-0.1, 10), (float("nan"), 10)])
def test_what_is_no_share_is_refused(share, trials):
    with pytest.raises(ValueError, match="a share in"):
        wilson(share, trials)
