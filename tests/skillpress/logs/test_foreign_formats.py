"""Every format that others write says the same run, what it says beside it, and how the run ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skillpress.environments.calls.steps import text_of
from skillpress.logs.formats import format_of, part_of, runs_in
from skillpress.logs.trace import UnreadableTraceError
from tests.support.integrations import foreign_records as foreign
from tests.support.integrations.foreign_records import CALLS, DONE, OTHERS, RECORDS, RUN, read, run_in
from tests.support.integrations.trace_records import atif

Make = Callable[[], Any]
BOTH = {**RECORDS, **OTHERS}


@pytest.mark.parametrize("name", BOTH)
def test_a_record_is_told_by_its_content(name: str) -> None:
    format_name, make = BOTH[name]
    known = format_of(make())
    assert known is not None and known.name == format_name


@pytest.mark.parametrize("name", RECORDS)
def test_every_format_says_the_same_run(name: str) -> None:
    assert run_in(read(RECORDS[name][1]())) == RUN


def test_swe_agents_commands_are_calls_of_their_first_word() -> None:
    found = read(foreign.swe_agent())
    assert [step.tool for step in found.steps] == ["search", "edit", "test"]
    assert [step.answer for step in found.steps] == ["gcd.py:1", "edited", "3 passed"]
    assert found.steps[1].content == {"command": "edit gcd.py 3\nreturn a\nend_of_edit\n"}


def test_swe_agents_history_alone_has_the_same_commands() -> None:
    whole = foreign.swe_agent()
    del whole["trajectory"]
    assert [(step.tool, step.answer) for step in read(whole).steps] == [
        ("search", "gcd.py:1"),
        ("edit", "edited"),
        ("test", "3 passed"),
    ]


def test_a_turn_in_which_swe_agent_gave_no_command_is_refused_words() -> None:
    step = {"action": "", "observation": "Your output was not formatted correctly", "response": "I think"}
    (found,) = read(foreign.swe_agent(trajectory=[step])).steps
    assert (found.tool, found.content, found.refused) == (None, "I think", True)


def test_the_attempts_of_swe_agent_are_runs_unless_one_was_chosen() -> None:
    first, second = foreign.swe_agent(), foreign.swe_agent(info={"exit_status": "exit_cost"})
    runs = runs_in({"attempts": [first, second]})
    assert runs is not None and [read(run).success for run in runs] == [None, None]
    assert [read(run).candidates[0].text for run in runs] == ["submitted", "exit_cost"]
    chosen = {**first, "attempts": [first, second]}
    assert runs_in(chosen) is None and read(chosen).left_out["other attempts"] == 1


def test_mini_swe_agents_code_block_is_a_call_of_bash() -> None:
    found = read(foreign.mini_swe_agent())
    assert [step.tool for step in found.steps] == ["bash", "bash", None]
    assert [step.content for step in found.steps[:2]] == [
        {"command": "ls"},
        {"command": "sed -i s/b/a/ gcd.py"},
    ]
    assert "gcd.py" in found.steps[0].answer


def test_mini_swe_agents_later_versions_call_a_tool() -> None:
    whole = foreign.mini_swe_agent()
    whole["messages"] = [*foreign.openai_messages(), {"role": "exit", "content": "", "extra": {}}]
    assert run_in(read(whole))[:3] == RUN[:3]
    response = {"object": "response", "id": "r", "output": foreign.response_items(), "extra": {}}
    whole["messages"] = [foreign.TASK, response]
    assert run_in(read(whole)) == RUN


def test_openhands_older_pairs_are_events() -> None:
    events = foreign.openhands_events()
    pairs = [[event, {**event, "source": "user"}] for event in events if "action" in event]
    assert [step.tool for step in read({"instance_id": "x", "history": pairs}).steps][:3] == [
        "search",
        "edit",
        "test",
    ]


@pytest.mark.parametrize("kind", ["error", "user_rejected"])
def test_openhands_says_which_action_failed(kind: str) -> None:
    events = foreign.openhands_events()
    events[4]["observation"] = kind
    assert [step.refused for step in read(events).steps] == [True, False, False, False]


def test_openhands_actions_without_a_call_of_an_api_are_named_by_their_kind() -> None:
    events = foreign.openhands_events()
    for event in events:
        event.pop("tool_call_metadata", None)
    found = read(events)
    assert [(step.tool, step.content) for step in found.steps[:1]] == [("run", {"command": "x"})]


def test_the_tools_of_tau2s_user_are_not_the_agents() -> None:
    assert run_in(read(foreign.tau2_bench())) == [(None, "Hello.", "Mend gcd."), *RUN]


def test_the_simulations_of_tau2_are_runs_of_one_agent() -> None:
    whole = {"info": {"agent_info": {"llm": "small"}}, "tasks": [], "simulations": [foreign.tau2_bench()]}
    (run,) = runs_in(whole) or ()
    assert (read(run).version, read(run).task, read(run).name) == ("small", "t7", "sim-1")


def test_the_samples_of_inspect_are_runs_of_one_model() -> None:
    runs = runs_in(foreign.inspect_log())
    assert runs is not None and [read(run).name for run in runs] == ["mend-3/2", "mend-3/3"]
    assert read(runs[0]).version == "large" and run_in(read(runs[0])) == RUN


def test_the_spans_of_an_otlp_document_are_grouped_by_their_trace() -> None:
    spans = runs_in(foreign.otlp_document())
    assert spans is not None and run_in(read(spans)) == RUN
    parts = [part_of(span) for span in spans]
    assert {(part[0].name, part[1]) for part in parts if part is not None} == {
        ("OpenTelemetry spans", "5b8e")
    }


def test_answers_of_a_model_in_older_events_are_the_steps_of_spans_without_tools() -> None:
    assert [(step.tool, text_of(step.content)) for step in read(foreign.otlp_events()).steps][-1] == (
        None,
        DONE,
    )
    assert [step.tool for step in read(foreign.otlp_events()).steps[:3]] == [call[0] for call in CALLS]


def test_spans_of_other_conventions_are_read() -> None:
    span = {
        "context": {"trace_id": "t", "span_id": "s"},
        "parent_id": None,
        "start_time": "2026-03-01T10:00:00Z",
    }
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "search",
        "input.value": '{"text": "gcd"}',
        "output.value": "x",
    }
    model = {
        "traceloop.span.kind": "llm",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": DONE,
    }
    late = {**span, "context": {"trace_id": "t", "span_id": "u"}, "start_time": "2026-03-01T10:00:01Z"}
    spans = [{**span, "name": "a", "attributes": tool}, {**late, "name": "b", "attributes": model}]
    assert run_in(read(spans)) == [("search", {"text": "gcd"}, "x"), (None, DONE, "")]


def test_spans_that_failed_are_refused_steps() -> None:
    spans = foreign.otlp_spans()
    for span in spans:
        span["status"] = {"code": 2} if span["name"].endswith("edit") else {}
    assert [step.refused for step in read(spans).steps] == [False, True, False, False]


def test_gemini_names_the_tool_that_an_answer_is_from() -> None:
    found = read(foreign.gemini())
    assert [step.tool for step in found.steps] == ["search", "edit", "test", None]
    assert found.steps[0].answer == {"output": "gcd.py:1"}


@pytest.mark.parametrize(
    "make", [foreign.claude_code, foreign.codex, foreign.langfuse_observations, foreign.openhands_events]
)
def test_lines_of_one_run_have_one_key(make: Make) -> None:
    parts = [part_of(line) for line in make()]
    assert len({(part[0].name, part[1]) for part in parts if part is not None}) == 1 and None not in parts


def test_claude_codes_stream_says_how_it_ended() -> None:
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {
            "type": "assistant",
            "session_id": "s",
            "message": {
                "id": "m",
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}],
            },
        },
        {
            "type": "user",
            "session_id": "s",
            "message": {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "gcd.py", "is_error": True}
                ],
            },
        },
        {
            "type": "assistant",
            "session_id": "s",
            "parent_tool_use_id": "t",
            "message": {
                "id": "n",
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "x", "name": "Other", "input": {}}],
            },
        },
        {"type": "result", "subtype": "error_max_turns", "is_error": True, "session_id": "s"},
    ]
    found = read(lines)
    assert [(step.tool, step.answer, step.refused) for step in found.steps] == [("Bash", "gcd.py", True)]
    assert (found.name, found.outcome, found.success) == ("s", "", None), "how it ended is not success"
    assert [(each.path, each.text, each.success) for each in found.candidates] == [
        ("subtype", "error_max_turns", None),
        ("is_error", "", True),
    ]
    assert found.left_out == {"runs of sub-agents": 1}


def test_a_resumed_session_counts_its_copied_lines_once() -> None:
    lines = foreign.claude_code()
    assert read([*lines, *lines]).steps == read(lines).steps


def test_a_sub_agents_own_file_is_not_a_run() -> None:
    lines = [{**line, "isSidechain": True} for line in foreign.claude_code()]
    with pytest.raises(UnreadableTraceError, match="sub-agent"):
        read(lines)


def test_langchains_executor_has_its_steps_beside_its_output() -> None:
    pairs = [
        [{"tool": tool, "tool_input": arguments, "log": "Next."}, answer] for tool, arguments, answer in CALLS
    ]
    assert run_in(read({"input": "Mend gcd.", "intermediate_steps": pairs, "output": DONE})) == RUN


def test_a_row_may_hold_any_format() -> None:
    found = read({"id": 7, "trajectory": foreign.swe_agent()["trajectory"], "target": True})
    assert [step.tool for step in found.steps] == ["search", "edit", "test"]
    nested = read({"id": 7, "payload": atif(), "reward": 0.0})
    assert [step.tool for step in nested.steps][:3] == ["search", "edit", "test"] and nested.success is False


def test_a_row_with_two_conversations_is_refused() -> None:
    talk = foreign.openai_messages()
    assert format_of({"chosen": talk, "rejected": talk}) is None


LEFT_OUT = {
    "SWE-agent": (foreign.swe_agent, {"demonstration messages": 1}),
    "verifiers": (foreign.verifiers, {"steps of the prompt": 1}),
    "Claude Code": (foreign.claude_code, {"runs of sub-agents": 1}),
    "OpenTelemetry": (foreign.otlp_spans, {"runs of sub-agents": 1}),
    "ATIF": (atif, {"runs of sub-agents": 1, "steps of copied context": 1}),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_has_a_reason(name: str) -> None:
    make, reasons = LEFT_OUT[name]
    assert read(make()).left_out == reasons


def test_atif_documents_that_continue_one_another_name_one_run() -> None:
    first = atif(session_id="s", continued_trajectory_ref="trajectory.cont-1.json")
    second = atif(session_id="s-cont-1")
    calls = [read(record).call for record in (first, second)]
    assert [call.session for call in calls if call is not None] == ["s", "s"]


def test_an_atif_document_of_its_own_is_a_whole_run() -> None:
    assert read(atif()).call is None
    first, *others = atif()["steps"]
    copied = read(atif(session_id="s", steps=[{**first, "is_copied_context": True}, *others])).call
    assert copied is not None and copied.session == "s"


STRANGERS = [
    {"steps": [{"action": "look"}]},
    {"messages": [{"text": "hello"}]},
    {"conversations": ["hello", "there"]},
    {"trajectory": [[1, 2], [3, 4]]},
    {"prompt": "Say hello.", "completion": "Hello.", "reward": 1.0},
    {"id": 1, "source": "agent", "name": "x"},
    {"type": "assistant", "text": "hello"},
    {"spans": [{"name": "x"}]},
    {"samples": [{"input": "x"}], "eval": {}},
    {"traceId": "x", "spanId": "y"},
    {"observations": []},
    {"question": "What?", "answer": "That."},
    [[{"role": "user"}]],
    ["user", "assistant"],
]


@pytest.mark.parametrize("record", STRANGERS, ids=range(len(STRANGERS)))
def test_a_strangers_record_has_no_format(record: Any) -> None:
    assert format_of(record) is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"messages": [foreign.TASK]}, "no message is an assistant's; the speakers are user"),
        ({"messages": [foreign.TASK, {"role": "planner", "content": "x"}]}, "the speakers are user, planner"),
        ({"messages": [{"role": "assistant", "content": "x", "is_demo": True}]}, "apart from demonstrations"),
        ({"messages": [foreign.TASK, {"role": "assistant", "content": [3]}]}, "a int among its parts"),
        ({"messages": [foreign.TASK, {"role": "assistant", "tool_calls": 3}]}, "tool_calls is a int"),
        ({"messages": [foreign.TASK, {"role": "assistant", "tool_calls": "[{"}]}, "text but not JSON"),
        (
            {"input": [foreign.TASK, {"type": "function_call", "call_id": "c"}]},
            "a function_call has no name",
        ),
        ([{**foreign.otlp_events()[0], "events": []}], "CAPTURE_MESSAGE_CONTENT"),
        (
            {**foreign.agents_sdk(), "session_items": [{"type": "x"}], "generated_items": []},
            "has no raw item",
        ),
    ],
)
def test_a_record_that_cannot_be_read_whole_is_refused(record: Any, said: str) -> None:
    with pytest.raises(UnreadableTraceError, match=said):
        read(record)


def test_speakers_who_are_unknown_are_counted() -> None:
    messages = [*foreign.openai_messages(), {"role": "critic", "content": "Fine."}]
    assert read({"messages": messages}).left_out == {"messages of other speakers": 1}
