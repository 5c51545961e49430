"""Power of the paired t test, against a simulation and Cohen's tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from studies.statistics.power import power, seeds_needed


def test_power_is_the_share_of_simulated_studies_that_find_the_difference() -> None:
    draws = np.random.default_rng(0).normal(1.5, 1.2, (20_000, 8))
    found = (ttest_1samp(draws, 0, axis=1).pvalue < 0.05).mean()
    assert power(1.5, 1.2, 8) == pytest.approx(found, abs=0.01)


def test_without_a_difference_it_is_the_level() -> None:
    assert power(0.0, 1.0, 5, level=0.02) == pytest.approx(0.02, abs=1e-6)


def test_a_standardised_difference_of_a_half_needs_34_pairs() -> None:
    assert seeds_needed(0.5, 1.0) == 34  # Cohen 1988; G*Power gives the same


def test_hopeless_differences_are_refused() -> None:
    with pytest.raises(ValueError, match="needs over 1000 seeds"):
        seeds_needed(0.001, 1.0)
