"""Our own distributions against scipy's, which are an independent implementation."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtr, stdtrit
from scipy.stats import binomtest

from skillpress.core import distributions

DEGREES = st.one_of(st.integers(1, 5_000).map(float), st.floats(1, 1_000), st.just(inf))


@given(DEGREES, st.floats(-30, 30))
def test_the_chance_below_a_value_is_that_of_scipy(degrees: float, value: float) -> None:
    assert distributions.cdf(degrees, value) == pytest.approx(
        float(stdtr(degrees, value)), rel=1e-9, abs=1e-300
    )


@given(DEGREES, st.floats(1e-6, 1 - 1e-6))
def test_the_value_above_a_chance_is_that_of_scipy(degrees: float, chance: float) -> None:
    expected = float(stdtrit(degrees, chance))
    assert distributions.quantile(degrees, chance) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 400).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_the_sign_test_is_that_of_scipy(counts: tuple[int, int]) -> None:
    expected = float(binomtest(*counts).pvalue)
    assert distributions.tails(*counts) == pytest.approx(expected, rel=1e-12)
    assert distributions.sign_test(*counts) == expected
    assert distributions.sign_test(0, 0) == 1.0


def test_where_scipy_is_installed_its_bits_are_kept() -> None:
    assert distributions.student_cdf(7, -1.3) == float(stdtr(7, -1.3))
    assert distributions.student_quantile(7, 0.975) == float(stdtrit(7, 0.975))
    assert distributions.normal_quantile(0.975) == float(ndtri(0.975))


def test_without_scipy_the_same_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "_special", lambda: None)
    assert distributions.student_cdf(7, -1.3) == pytest.approx(float(stdtr(7, -1.3)), rel=1e-12)
    assert distributions.student_quantile(7, 0.975) == pytest.approx(float(stdtrit(7, 0.975)), rel=1e-12)
    assert distributions.normal_quantile(0.975) == pytest.approx(float(ndtri(0.975)), rel=1e-12)
    assert distributions.sign_test(3, 11) == pytest.approx(float(binomtest(3, 11).pvalue), rel=1e-12)
