"""Whether a segmentation cost can choose reuse on a benchmark, by four conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.intervals import Interval
from skillpress.evaluation.analysis.choice import Choice
from skillpress.evaluation.analysis.reuse_conditions import FEWEST, conditions

HOLDS = Choice(
    tasks=128, won_twice=100, differ=80, deviation=1.0, of_length=0.1, of_others=0.5, per_segment=0.05,
    deviation_interval=Interval(0.9, 1.1), of_length_interval=Interval(0.0, 0.2),
    of_others_interval=Interval(0.4, 0.6),
)  # fmt: skip


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
        ({"of_others": -0.01}, "undecided: 4"),
        ({"of_others": -0.01, "of_length": 0.9}, "no: 3"),
    ],
)
def test_a_condition_that_fails_is_named(values: dict[str, float], verdict: str) -> None:
    assert conditions(of_three_seeds(**values)).verdict == verdict


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "yes"),
        ({"of_length": 0.9, "of_length_interval": Interval(0.8, 1.0)}, "no: 3"),
        ({"of_length": 0.9, "of_length_interval": Interval(0.6, 1.0)}, "undecided: 3"),
        ({"deviation_interval": Interval(0.1, 2.0)}, "undecided: 2"),
        ({"differ": 52}, "undecided: 1"),
        ({"of_others_interval": None}, "undecided: 4"),
    ],
)
def test_one_policy_is_judged_by_the_intervals_over_its_tasks(
    changed: dict[str, object], verdict: str
) -> None:
    assert conditions([replace(HOLDS, **changed)]).verdict == verdict  # type: ignore[arg-type]


@given(
    tasks=st.integers(0, FEWEST - 1),
    policies=st.integers(1, 4),
    of_length=st.floats(-1, 1),
    of_others=st.floats(-1, 1),
)
def test_a_handful_of_tasks_decides_nothing_however_sure_its_figures_look(
    tasks: int, policies: int, of_length: float, of_others: float
) -> None:
    few = replace(HOLDS, tasks=tasks, won_twice=tasks, differ=tasks, of_length=of_length, of_others=of_others)
    shares = [few, *[replace(few, won_twice=0, differ=0)] * (policies - 1)]
    assert conditions(shares).verdict == "undecided: 1, 2, 3, 4"


@given(
    scale=st.sampled_from([0.01, 0.09, 0.1, 1.0, 3.0, 1000.0]),
    success=st.floats(0.1, 100),
    weight=st.floats(0, 100),
    deviations=st.lists(st.floats(0.01, 3), min_size=1, max_size=4),
)
def test_multiplying_all_rewards_changes_no_verdict(
    scale: float, success: float, weight: float, deviations: list[float]
) -> None:
    """λ and R grow alike, so a segment is the same part of a success; T is 30."""

    def found(times: float) -> list[Choice]:
        cost = (weight * times) / (success * times) / 30
        return [replace(HOLDS, deviation=deviation, per_segment=cost) for deviation in deviations]

    before, after = conditions(found(1.0)), conditions(found(scale))
    assert after.verdict == before.verdict
    assert before.worth is not None and after.worth is not None
    assert after.worth.mean == pytest.approx(before.worth.mean)


def test_the_penalty_deviates_by_what_a_segment_costs() -> None:
    worth = conditions([HOLDS, replace(HOLDS, deviation=2.0)]).worth
    assert worth is not None and worth.mean == pytest.approx(0.075)


def test_an_interval_of_a_correlation_ends_at_one() -> None:
    found = conditions([replace(HOLDS, of_length=of_length) for of_length in (0.9, 1.0, 1.0)]).length
    assert found is not None and found.interval is not None
    assert found.interval.low < 0.9 and found.interval.high == 1.0


def test_every_figure_says_its_tasks_and_its_interval() -> None:
    found = conditions([HOLDS, replace(HOLDS, won_twice=60, differ=60)])
    assert (found.tasks, found.won_twice) == (256, 160)
    assert found.differ is not None and found.length is not None
    assert found.differ.in_words(".0%") == "90% (0% to 100%; 160 tasks)"
    assert found.length.in_words("+.2f") == "+0.10 (+0.10 to +0.10; 140 tasks)"
    assert conditions([HOLDS]).differ is not None
    assert conditions([HOLDS]).length.in_words("+.2f") == "+0.10 (+0.00 to +0.20; 80 tasks)"  # type: ignore[union-attr]


def test_wins_that_never_differ_leave_no_choice() -> None:
    alike = replace(
        HOLDS, differ=0, deviation=0.0, of_length=None, of_others=None,
        deviation_interval=Interval(0.0, 0.0), of_length_interval=None, of_others_interval=None,
    )  # fmt: skip
    assert conditions([alike]).verdict == "no: 1, 2"
    assert conditions([alike] * 3).verdict == "no: 1, 2"
    never = replace(alike, won_twice=0, deviation=None, deviation_interval=None)
    assert conditions([never]).verdict == "undecided: 1, 2, 3, 4"
