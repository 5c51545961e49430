"""Whether a segmentation cost can choose reuse on a benchmark, by four conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillpress.measure.analysis.choice import Choice
from skillpress.measure.analysis.reuse_conditions import conditions

HOLDS = Choice(
    tasks=128, won_twice=100, differ=80, deviation=1.0, of_length=0.1, of_others=0.5, per_segment=0.5
)


def of_three_seeds(**values: float) -> list[Choice]:
    """Start policies with these values, whose last correlation differs by a hundredth."""
    changed = replace(HOLDS, **values)
    return [replace(changed, of_others=changed.of_others + 0.01 * seed) for seed in range(3)]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({}, "yes"),
        ({"differ": 40}, "no: 1"),
        ({"deviation": 0.1}, "no: 2"),
        ({"of_length": 0.9}, "no: 3"),
        ({"of_length": -0.9}, "yes"),
        ({"of_others": -0.5}, "no: 4"),
        ({"differ": 10, "of_others": -0.5}, "no: 1, 4"),
        ({"of_others": -0.01}, "cannot be told"),
    ],
)
def test_a_condition_that_fails_is_named(values: dict[str, float], verdict: str) -> None:
    assert conditions(of_three_seeds(**values)).verdict == verdict


def test_one_policy_has_no_interval_and_cannot_say_yes() -> None:
    assert conditions([HOLDS]).verdict == "cannot be told"
    assert conditions([replace(HOLDS, of_length=0.9)]).verdict == "no: 3"


def test_the_penalty_deviates_by_what_a_segment_costs() -> None:
    assert conditions([HOLDS, replace(HOLDS, deviation=2.0)]).reward == pytest.approx(0.75)


def test_an_interval_of_a_correlation_ends_at_one() -> None:
    found = conditions([replace(HOLDS, of_length=of_length) for of_length in (0.9, 1.0, 1.0)]).length
    assert found is not None and found.low is not None
    assert found.low < 0.9 and found.high == 1.0


def test_shares_are_those_of_all_policies_together() -> None:
    found = conditions([HOLDS, replace(HOLDS, won_twice=60, differ=0)])
    assert (found.tasks, found.won_twice, found.differ) == (256, 160, 0.5)


def test_wins_that_never_differ_leave_no_choice() -> None:
    alike = replace(HOLDS, differ=0, deviation=0.0, of_length=None, of_others=None)
    assert conditions([alike] * 3).verdict == "no: 1"
    never = replace(alike, won_twice=0, deviation=None)
    assert conditions([never]).verdict == "no: 1"
