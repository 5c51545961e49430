"""Outcomes are counted by the field that decided them, and what is odd about them is said."""

from __future__ import annotations

import math

import pytest

from skillpress.logs.fields import Wanted, seconds, success_field
from skillpress.logs.missing_fields import MissingFieldError
from skillpress.logs.outcomes import Outcomes
from skillpress.logs.trace import TracesError
from tests.support.integrations.trace_records import chat


def outcomes(*found: tuple[str, bool | None, float | None]) -> Outcomes:
    made = Outcomes()
    for each in found:
        made.add(*each)
    return made


def test_each_field_has_its_counts() -> None:
    made = outcomes(
        ("resolved", True, 1.0), ("resolved", False, 0.0), ("resolved", None, None), ("", None, None)
    )
    assert list(made.lines()) == ["resolved: 1 won, 1 lost, 1 unknown", "1 traces name no outcome"]
    assert list(made.doubts()) == []


def test_all_or_none_is_doubted() -> None:
    (said,) = outcomes(*[("reward", False, 0.0)] * 3).doubts("reward=2")
    assert said.startswith("--success reward=2: not one of 3 traces succeeded by it")
    (said,) = outcomes(*[("reward", True, 1.0)] * 3).doubts()
    assert said.startswith("outcome reward: all of 3 traces succeeded by it")


def test_scores_between_are_shown_with_their_range_and_the_option_to_write() -> None:
    made = outcomes(
        ("reward", None, 0.25), ("reward", None, -0.5), ("reward", True, 1.0), ("reward", None, None)
    )
    (said,) = (text for text in made.doubts() if "neither" in text)
    assert "2 of 4 scores are neither the number 0 nor 1 (they go from -0.5 to 1)" in said
    assert "--success 'reward>=NUMBER'" in said
    assert math.isinf(outcomes(("x", True, math.inf)).fields["x"].low), "infinity is no end of a range"


@pytest.mark.parametrize(
    ("option", "value", "won"),
    [
        ("r", "1.0", True), ("r", 0.0, False), ("r", math.nan, None), ("r", "NaN", None),
        ("r", "passed", True),
        ("r>=1", "1.5", True), ("r>=1", math.nan, None), ("r>=1", True, True), ("r>=1", 10**400, True),
        ("r>=1", "", None), ("r>=1", None, None),
    ],
)  # fmt: skip
def test_numbers_are_compared_as_numbers_and_nan_is_unknown(
    option: str, value: object, won: bool | None
) -> None:
    assert success_field(option).of(value) is won


def test_a_named_field_overrules(read_lines) -> None:
    lines = [chat(reward=0.5 * number, solved=number == 0) for number in range(3)]
    found = read_lines(*lines, wanted=Wanted(success=success_field("reward>=0.5")))
    assert list(found.outcomes.lines()) == ["reward: 2 won, 1 lost"]
    assert [trace.success for trace in found.traces] == [False, True, True]


def test_a_field_that_no_trace_has_is_refused_by_name(read_lines) -> None:
    with pytest.raises(MissingFieldError, match="--success slved: none of 2 traces has it") as caught:
        read_lines(chat(), chat(), wanted=Wanted(success=success_field("slved")))
    assert caught.value.option == "success" and isinstance(caught.value, TracesError)


def test_a_time_that_cannot_be_read_is_said(read_lines) -> None:
    assert read_lines(chat(), chat(created=10**400, solved=False)).warnings == [
        "1 trace has a time that cannot be read; it counts as unknown"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T10:00:00Z", "2026-03-01 10:00:00 UTC", "2026/03/01 10:00:00",
        "Sun, 01 Mar 2026 10:00:00 GMT", "1772359200", 1772359200,
    ],
)  # fmt: skip
def test_a_time_is_read_in_any_form(text: object) -> None:
    assert seconds(text) == 1772359200.0


@pytest.mark.parametrize(
    "odd", [None, True, "", "tomorrow", "Sun, 99 Mar 2026", 10**400, math.nan, "1e999", []]
)
def test_other_times_are_unknown(odd: object) -> None:
    assert seconds(odd) is None
