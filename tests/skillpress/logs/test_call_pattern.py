"""Calls in text, found by the user's pattern."""

from __future__ import annotations

import pytest

from skillpress.environments.calls.steps import TraceStep, arguments_of
from skillpress.logs.call_pattern import call_pattern
from skillpress.logs.fields import Wanted
from skillpress.logs.trace import ModelCallPlace, Trace, TracesError

REACT = r"^Action: (?P<tool>\w+)\nAction Input: (?P<arguments>.*)$"


def test_every_match_is_a_call_and_the_answer_belongs_to_the_last() -> None:
    said = 'Thought: both.\nAction: search\nAction Input: Oslo\nAction: look\nAction Input: {"n": 1}'
    steps = (TraceStep(None, said, "found"), TraceStep(None, "Done."), TraceStep("run", "Action: no"))
    found = call_pattern(REACT).read(Trace("", steps)).steps
    assert found == (
        TraceStep("search", "Oslo", ""), TraceStep("look", '{"n": 1}', "found"), *steps[1:],
    )  # fmt: skip
    assert arguments_of(found[1]) == {"n": 1}


def test_without_a_group_for_arguments_they_are_the_whole_match() -> None:
    (step,) = call_pattern(r"(?P<tool>\w+)\[.*?\]").read(Trace("", (TraceStep(None, "Search[Oslo]."),))).steps
    assert step == TraceStep("Search", "Search[Oslo]")


def test_a_model_calls_history_keeps_its_length_in_steps() -> None:
    said = TraceStep(None, "Action: a\nAction Input: 1\nAction: b\nAction Input: 2")
    read = call_pattern(REACT).read(Trace("", (said, said), call=ModelCallPlace(earlier=1)))
    assert len(read.steps) == 4 and read.call == ModelCallPlace(earlier=2)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "not a regular expression"),
        ("a", "named groups must be"),
        ("(?P<tool>a)(?P<x>b)", "named groups must be"),
    ],
)
def test_a_pattern_that_names_no_tool_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(TracesError, match=why):
        call_pattern(pattern)


def test_a_log_is_read_with_it(read_lines) -> None:
    line = {"messages": [{"role": "assistant", "content": "I see. <do>ls /src</do>"}]}
    found = read_lines(line, wanted=Wanted(call=call_pattern("<do>(?P<tool>\\w+)(?P<arguments>.*)</do>")))
    assert found.skills == [("ls",)] and found.called == 1
