"""Statistics over seeds of which some diverge, against enumeration and known values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import permutation_test

from skillpress.evaluation.statistics.sign_flips import sign_flips_of_seeds
from studies.statistics.divergence import LOSS, RATE, coverage, seeds_to_cover


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_p_is_the_share_of_all_signs_with_as_large_a_sum(count: int) -> None:
    values = np.random.default_rng(count).normal(0.5, 1.0, count)
    sums = [abs(np.dot(signs, values)) for signs in product((1, -1), repeat=count)]
    assert sign_flips_of_seeds(values.tolist()) == np.mean(np.array(sums) >= abs(values.sum()) - 1e-12)


def test_it_is_the_permutation_test_of_scipy_for_paired_samples() -> None:
    values = np.random.default_rng(1).normal(0.3, 1.0, 8)
    known = permutation_test((values, np.zeros(8)), lambda a, b, axis: (a - b).mean(axis=axis),
                             permutation_type="samples", vectorized=True, n_resamples=10_000)  # fmt: skip
    assert sign_flips_of_seeds(values.tolist()) == pytest.approx(known.pvalue)


def test_eight_seeds_that_agree_have_the_smallest_p_and_seeds_that_tie_have_none() -> None:
    assert sign_flips_of_seeds([0.1] * 8) == 2 / 2**8
    assert sign_flips_of_seeds([0.0] * 8) == 1.0


@pytest.mark.parametrize("values", [[], [1.0] * 21])
def test_signs_that_cannot_be_counted_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="must be 1 to 20"):
        sign_flips_of_seeds(values)


def test_a_training_that_diverges_does_not_raise_the_level_of_the_signs() -> None:
    """Both methods diverge alike, so nothing differs: p below 5% comes in at most 5% of studies."""
    draws = np.random.default_rng(0)
    lost = LOSS * (draws.random((2, 4000, 8)) < RATE)
    differences = draws.normal(0.0, 0.5, (4000, 8)) + lost[0] - lost[1]
    alarms = np.mean([sign_flips_of_seeds(row) < 0.05 for row in differences.tolist()])
    assert alarms < 0.05 + 2 * 0.0035


@pytest.mark.parametrize(("seeds", "expected"), [(3, 0.33), (5, 0.49), (8, 0.65)])
def test_an_interval_covers_when_one_of_its_seeds_diverged(seeds: int, expected: float) -> None:
    """An interval holds the mean if a seed diverged, with chance 1 - (7/8)^n, where others hardly scatter."""
    assert coverage(seeds, 0.5) == pytest.approx(expected, abs=0.02)
    assert coverage(seeds, 1e-6) == pytest.approx(1 - (1 - RATE) ** seeds, abs=0.015)


def test_without_divergence_an_interval_covers_as_it_says() -> None:
    assert coverage(5, 1.0, rate=0.0) == pytest.approx(0.95, abs=0.005)


def test_seeds_suffice_from_where_no_later_count_covers_less() -> None:
    assert seeds_to_cover({3: 0.4, 20: 0.93, 25: 0.87, 40: 0.93, 50: 0.94}, 0.93) == 40
    assert seeds_to_cover({3: 0.4, 8: 0.66}, 0.93) is None
