"""Wilson's interval against scipy's, which is an independent implementation; clustered ones against
resampled tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from skillpress.core.intervals import clustered_mean, clustered_share, wilson


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


ROUGH = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def about(interval):
    """The same interval up to rounding."""
    return type(interval)(pytest.approx(interval.low, abs=1e-9), pytest.approx(interval.high, abs=1e-9))


def counts(pairs):
    """(parts, wholes) with parts <= wholes, a task each."""
    return np.array([min(p) for p in pairs]), np.array([max(p) for p in pairs])


@given(ROUGH.filter(lambda pairs: any(max(p) for p in pairs)))
def test_a_share_lies_in_its_interval_and_the_interval_between_0_and_1(pairs):
    parts, wholes = counts(pairs)
    found = clustered_share(parts, wholes)
    assert 0 <= found.low <= parts.sum() / wholes.sum() + 1e-12
    assert parts.sum() / wholes.sum() - 1e-12 <= found.high <= 1


def test_one_step_per_task_is_wilsons_interval_of_n_minus_1_trials():
    parts = np.array([1] * 30 + [0] * 70)
    assert clustered_share(parts, np.ones(100, dtype=int)) == about(wilson(0.3, 99))


def test_steps_of_a_task_that_all_agree_are_worth_one():
    parts = np.array([1] * 30 + [0] * 70)
    alone, repeated = (clustered_share(k * parts, k * np.ones(100, dtype=int)) for k in (1, 20))
    assert repeated == about(alone)


def test_the_deviation_is_that_of_resampled_tasks():
    chance = np.random.default_rng(0)
    wholes = chance.integers(2, 30, 400)
    parts = chance.binomial(wholes, chance.beta(2, 5, 400))
    draws = chance.integers(0, 400, (4000, 400))
    resampled = (parts[draws].sum(1) / wholes[draws].sum(1)).std()
    share, mean = clustered_share(parts, wholes), clustered_mean(parts, wholes)
    assert share.high - share.low == pytest.approx(2 * 1.96 * resampled, rel=0.06)
    assert mean.high - mean.low == pytest.approx(2 * 1.96 * resampled, rel=0.06)


def test_a_rate_that_was_never_seen_is_known_no_better_than_by_one_trial_per_task():
    found = clustered_share(np.zeros(20, dtype=int), np.full(20, 50))
    assert found == about(wilson(0, 20))


def test_one_task_says_nothing_about_a_mean_and_little_about_a_share():
    one = np.array([3]), np.array([4])
    assert clustered_mean(*one) is None
    assert clustered_share(*one) == wilson(3 / 4, 1)
