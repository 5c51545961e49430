"""Every format's record gives the same steps, however the format writes them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.rollout_files import write_rollouts
from skillpress.environments.calls.steps import TraceStep, action_of, text_of
from skillpress.logs.fields import SuccessField, Wanted, dig, success_field
from skillpress.logs.formats import format_of, read_record
from skillpress.logs.json_files import parsed
from skillpress.logs.projection import NameProjection
from skillpress.logs.rollouts import read_rollouts
from skillpress.logs.trace import TracesError, UnreadableTraceError
from tests.support.integrations.foreign_records import read
from tests.support.integrations.trace_records import atif, chat, mlflow_trace, our_atif, our_mlflow_trace

RECORDS = {"ATIF": atif, "MLflow traces": mlflow_trace, "chat completions": chat}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_told_by_its_content(name: str) -> None:
    known = format_of(RECORDS[name]())
    assert known is not None and known.name == name


@pytest.mark.parametrize("record", [{}, [], 3, "text", {"messages": []}, {"steps": []}, {"info": {}}, None])
def test_what_is_no_trace_has_no_format(record: Any) -> None:
    assert format_of(record) is None


@pytest.mark.parametrize("name", RECORDS)
def test_calls_are_steps_in_the_order_in_which_they_were_made(name: str) -> None:
    steps = [step for step in read(RECORDS[name]()).steps if step.tool is not None]
    assert [step.tool for step in steps] == ["search", "edit", "test"]
    assert action_of(steps[0]) == "gcd"
    assert json.loads(action_of(steps[1])) == {"path": "gcd.py", "line": 3}
    assert [text_of(step.answer) for step in steps][::2] == ["gcd.py:1", "3 passed"]


def test_a_turn_without_a_call_is_a_step_in_words() -> None:
    assert read(atif()).steps[-1].content == read(chat()).steps[-1].content == "It is mended."
    assert read(chat()).steps[-1].tool is None


def test_what_each_format_says_of_the_run() -> None:
    written, said, traced = read(atif()), read(chat()), read(mlflow_trace())
    assert (written.name, written.version) == ("run-1/main", "mender 2.1 small")
    assert written.left_out == {"runs of sub-agents": 1, "steps of copied context": 1}
    assert (said.name, said.task, said.version, said.time) == ("run-1", "gcd", "small", 1700000000.0)
    assert (traced.name, traced.task, traced.version) == ("tr-1", "gcd", "m-1")
    assert written.time == traced.time is not None
    assert (written.outcome, said.outcome) == ("extra.verifier.reward", "solved")
    assert written.success is said.success is True and traced.success is None


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (atif(), "extra.verifier.reward"),
        (atif(), "extra.verifier.reward>=0.5"),
        (chat(), "solved"),
        (chat(), "task_id=GCD"),
        (mlflow_trace(), "mended"),
        (mlflow_trace(), "team=red"),
        (mlflow_trace(), "info.state=OK"),
    ],
)
def test_a_named_field_says_who_succeeded(record: Any, field: str) -> None:
    assert read(record, Wanted(success=success_field(field))).success is True


def test_a_missing_field_leaves_the_outcome_unknown() -> None:
    assert read(chat(), Wanted(success=success_field("nowhere"))).success is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("r", 0.4, "r>=NUMBER"),
        ("r", "perhaps", "r=VALUE"),
        ("r", [1], "neither yes nor no"),
        ("r>=1", "x", "not a number"),
    ],
)
def test_a_field_that_says_neither_yes_nor_no_is_refused(field: str, value: Any, said: str) -> None:
    with pytest.raises(TracesError, match=said):
        read(chat(r=value), Wanted(success=success_field(field)))


@pytest.mark.parametrize("field", ["", ">=1", "=won", "r>=many"])
def test_an_unreadable_success_option_says_what_is_right(field: str) -> None:
    with pytest.raises(TracesError, match="--success"):
        success_field(field)


def test_task_version_and_time_may_be_fields_of_the_record() -> None:
    found = read(chat(), Wanted(task="messages.1.content", version="solved", time="task_id"))
    assert (found.task, found.version, found.time) == ("Mend gcd.", "True", None)


def test_a_path_goes_through_names_with_dots_and_lists() -> None:
    record = {"a.b": {"c": [{"d": 1}]}, "a": {"x": 2}}
    assert dig(record, "a.b.c.0.d") == 1 and dig(record, "a.x") == 2
    assert dig(record, "a.b.c.1.d") is None and dig(record, "") is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (atif(schema_version="ATIF-v2.0"), "ATIF-v2.0"),
        (atif(steps=None), "has no list of steps"),
        (
            atif(steps=[{"source": "agent", "tool_calls": [{"arguments": {}}]}]),
            "ATIF record is damaged.*function_name",
        ),
        (chat(messages=[{"role": "user"}, "text"]), "has no role"),
        (
            chat(messages=[{"role": "assistant", "tool_calls": [{"id": 1}]}]),
            "a tool call has no name; its keys are id",
        ),
        (mlflow_trace(data={}), "has no spans"),
        ({"trace_id": "x", "trace": "{"}, "'trace' is not JSON"),
    ],
)
def test_a_damaged_record_says_what_is_wrong(record: Any, said: str) -> None:
    with pytest.raises(UnreadableTraceError, match=said):
        read(record)


CALL = {"id": "1", "type": "function", "function": {"name": "edit", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ({"tool_calls": json.dumps([CALL, CALL])}, ["edit", "edit"]),
        ({"tool_calls": [CALL], "function_call": CALL["function"]}, ["edit"]),
        ({"tool_calls": [], "function_call": CALL["function"]}, ["edit"]),
        ({"tool_calls": [{**CALL, "function": {"name": None, "arguments": "{}"}}]}, [""]),
    ],
)
def test_calls_are_read_however_a_log_writes_them(message: dict[str, Any], tools: list[str]) -> None:
    steps = read({"messages": [{"role": "assistant", "content": None, **message}]}).steps
    assert [step.tool for step in steps] == tools
    assert NameProjection()(steps) == [(tool,) if tool else () for tool in tools]


ODD = [None, 0, 1, -1, 10**400, math.nan, math.inf, "", "x", "\ud800", "[1]", '{"name": 3}', True]
ODD += [[], {}, [1], [None], [[]], [{}], {"a": 1}]
"""Values in logs of unknown origin, in any place."""


@pytest.mark.parametrize("make", [*RECORDS.values(), our_atif, our_mlflow_trace])
def test_whatever_stands_anywhere_a_record_is_read_or_is_said_to_be_damaged(make) -> None:
    wanted = Wanted(SuccessField("extra.verifier.reward", at_least=1.0), task="id", time="created")
    for place in _places(make()):
        for odd in ODD:
            record = make()
            inside = record
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = odd
            if (known := format_of(record)) is None:
                continue
            for fields in (Wanted(), wanted):
                with suppress(UnreadableTraceError, TracesError):
                    trace = read_record(known, record, fields)
                    assert trace.success in (None, True, False)
                    assert trace.time is None or math.isfinite(trace.time)
                    NameProjection()(trace.steps)


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inside:
        yield (*above, key)
        yield from _places(held, (*above, key))


@pytest.mark.parametrize(
    ("rule", "value", "won"),
    [
        ("1", 1.0, True), ("1", 1, True), ("1.0", 1, True), ("1", "1.0", True), ("1", 0.0, False),
        ("1", True, True), ("won", "Won ", True), ("nan", math.nan, True), ("1", "won", False),
        ("1", math.nan, None), ("1", "NaN", None), ("1", "", None), ("1", None, None), ("1", 10**400, False),
    ],
)  # fmt: skip
def test_a_value_is_equal_as_a_text_or_as_a_number(rule: str, value: Any, won: bool | None) -> None:
    assert success_field(f"reward={rule}").of(value) is won


def test_a_row_of_search_traces_holds_the_whole_trace() -> None:
    whole = mlflow_trace()
    assert read({"trace_id": "tr-1", "trace": json.dumps(whole), "state": "OK"}) == read(whole)


def test_without_tool_spans_the_models_answers_are_the_steps() -> None:
    trace = mlflow_trace()
    trace["data"]["spans"] = [
        span for span in trace["data"]["spans"] if "TOOL" not in str(span["attributes"])
    ]
    (step,) = read(trace).steps
    assert (step.tool, step.content) == (None, "Look.")


def test_a_span_that_failed_is_a_refused_step() -> None:
    assert [step.refused for step in read(mlflow_trace()).steps] == [False, True, False]


def test_a_logged_answer_is_the_last_message() -> None:
    request = chat()
    answer = request["messages"].pop()
    assert read({**request, "response": {"choices": [{"message": answer}]}}).steps == read(chat()).steps
    assert read({**request, "choices": [{"message": answer}]}).steps == read(chat()).steps


def test_the_older_function_call_is_a_call() -> None:
    call = {"name": "search", "arguments": '{"text": "gcd"}'}
    asked = {"role": "assistant", "content": None, "function_call": call}
    record = chat(messages=[asked, {"role": "function", "name": "search", "content": "gcd.py:1"}])
    (step,) = read(record).steps
    assert (step.tool, action_of(step), step.answer) == ("search", "gcd", "gcd.py:1")


def test_our_rollouts_know_success_task_policy_and_what_was_refused(episode, tmp_path: Path) -> None:
    calls = ['{"tool": "edit", "command": "view"}', '!{"tool": "submit"}', "go to desk 1"]
    played = [episode("t1", 0, calls, True), episode("t2", 0, ["look"], False)]
    write_rollouts(tmp_path / "r", [dataclasses.replace(each, policy="start") for each in played])
    (number, first), (_, second) = read_rollouts(tmp_path / "r")
    assert (number, first.success, first.task, first.version) == (0, True, "t1", "start")
    assert second.success is False
    assert [(step.tool, action_of(step), step.refused) for step in first.steps] == [
        ("edit", "view", False), ("submit", "{}", True), (None, "go to desk 1", False)
    ]  # fmt: skip


def test_only_the_wanted_episodes_come_with_their_observations(episode, tmp_path: Path) -> None:
    write_rollouts(tmp_path / "r", [episode(f"t{n}", 0, ["look", "go"], True) for n in range(5)])
    found = dict(read_rollouts(tmp_path / "r", frozenset({1, 3})))
    assert {number: trace.task for number, trace in found.items()} == {1: "t1", 3: "t3"}


@pytest.mark.parametrize("record", [our_atif(), our_mlflow_trace()], ids=["ATIF", "MLflow"])
def test_what_we_export_is_read_as_the_rollout_that_it_came_from(record: Any) -> None:
    found = read(record)
    said = found.name, found.task, found.version, found.success, found.time
    assert said == ("g/0", "t", "start", True, 3.0)
    assert [(step.tool, action_of(step), step.refused) for step in found.steps] == [
        ("edit", "view", False), (None, "", True), (None, "look", True)
    ]  # fmt: skip
    assert text_of(found.steps[0].answer) == "1: def" and text_of(found.steps[2].answer) == "Nothing."


def test_a_record_whose_named_field_is_damaged_is_passed_over() -> None:
    record = mlflow_trace()
    record["info"]["assessments"] = 5
    with pytest.raises(UnreadableTraceError, match="the MLflow traces record is damaged"):
        read(record, Wanted(success=success_field("won")))


def test_a_record_whose_number_is_none_is_passed_over() -> None:
    record = our_mlflow_trace()
    record["info"]["tags"]["policy_version"] = "three"
    with pytest.raises(UnreadableTraceError, match="the MLflow traces record is damaged"):
        read(record)


def test_a_moment_that_no_number_can_hold_is_none() -> None:
    assert read(chat(created=10**400)).time is None


def test_half_a_character_in_a_log_becomes_a_question_mark() -> None:
    assert parsed(rb'{"a\ud800": ["\uDC00\ud83d\ude00"]}') == {"a?": ["?\U0001f600"]}
    assert action_of(TraceStep("search", r'{"text": "\ud800"}')) == "?"
