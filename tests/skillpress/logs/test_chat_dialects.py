"""Chat completions in every dialect, and what a record says as one call of a run."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from skillpress.environments.calls.steps import TraceStep, action_of
from skillpress.logs import chat
from skillpress.logs.trace import ModelCallPlace, Trace
from tests.support.integrations.foreign_records import DONE, TASK, openai_messages

CALL = {"id": "a", "type": "function", "function": {"name": "edit", "arguments": '{"line": 3}'}}


def steps(*messages: Any, **beside: Any) -> tuple[TraceStep, ...]:
    return chat.read({"messages": [TASK, *messages], **beside}).steps


def call_of(record: Any) -> ModelCallPlace:
    found = chat.read(record).call
    assert found is not None
    return found


DIALECTS: dict[str, dict[str, Any]] = {
    "OpenAI": {"tool_calls": [CALL]},
    "as JSON text": {"tool_calls": json.dumps([CALL])},
    "each as JSON text": {"tool_calls": [json.dumps(CALL)]},
    "older": {"function_call": CALL["function"]},
    "older as JSON text": {"function_call": json.dumps(CALL["function"])},
    "both": {"tool_calls": [CALL], "function_call": CALL["function"]},
    "empty list and older": {"tool_calls": [], "function_call": CALL["function"]},
    "custom": {
        "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "edit", "input": '{"line": 3}'}}]
    },
    "flat": {"tool_calls": [{"id": "a", "name": "edit", "arguments": {"line": 3}}]},
    "LangChain": {"tool_calls": [{"id": "a", "name": "edit", "args": {"line": 3}, "type": "tool_call"}]},
    "LangChain beside": {"additional_kwargs": {"tool_calls": [CALL]}},
    "inspect": {
        "tool_calls": [{"id": "a", "function": "edit", "arguments": {"line": 3}, "type": "function"}]
    },
    "one call": {"tool_calls": CALL},
    "Anthropic": {"content": [{"type": "tool_use", "id": "a", "name": "edit", "input": {"line": 3}}]},
    "Anthropic's server": {
        "content": [{"type": "server_tool_use", "id": "a", "name": "edit", "input": {"line": 3}}]
    },
    "AI SDK": {
        "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "edit", "args": {"line": 3}}]
    },
    "OpenTelemetry": {"parts": [{"type": "tool_call", "id": "a", "name": "edit", "arguments": {"line": 3}}]},
    "Gemini": {"parts": [{"functionCall": {"name": "edit", "args": {"line": 3}}}]},
    "Bedrock": {"content": [{"toolUse": {"toolUseId": "a", "name": "edit", "input": {"line": 3}}}]},
    "unknown part": {"content": [{"type": "action", "name": "edit", "arguments": {"line": 3}}]},
}


@pytest.mark.parametrize("name", DIALECTS)
def test_one_call_is_one_step_in_every_dialect(name: str) -> None:
    answer = {"role": "tool", "tool_call_id": "a", "content": "edited"}
    (step,) = steps({"role": "assistant", "content": None, **DIALECTS[name]}, answer)
    assert (step.tool, action_of(step), step.answer) == ("edit", "3", "edited")


ANSWERS: dict[str, dict[str, Any]] = {
    "OpenAI": {"role": "tool", "tool_call_id": "a", "content": "edited"},
    "older": {"role": "function", "name": "edit", "content": "edited"},
    "Anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": "edited"}],
    },
    "AI SDK": {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "edit", "result": "edited"}],
    },
    "OpenTelemetry": {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "a", "response": "edited"}],
    },
    "Bedrock": {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": "edited"}}]},
    "items": {"type": "function_call_output", "call_id": "a", "output": "edited"},
    "JavaScript": {"type": "function_call_result", "callId": "a", "output": "edited"},
    "SWE-agent": {"role": "tool", "tool_call_ids": ["a"], "content": "edited"},
    "no id": {"role": "tool", "content": "edited"},
    "null id": {"role": "tool", "tool_call_id": None, "content": "edited"},
    "another id": {"role": "tool", "tool_call_id": "never given", "content": "edited"},
    "several": {"role": "tool", "tool_messages": [{"role": "tool", "id": "a", "content": "edited"}]},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_finds_its_call_in_every_dialect(name: str) -> None:
    (step,) = steps({"role": "assistant", "tool_calls": [CALL]}, ANSWERS[name])
    assert step.answer == "edited"


def test_ids_that_every_turn_uses_again_are_answered_turn_by_turn() -> None:
    turns = [
        (
            {"role": "assistant", "tool_calls": [CALL, CALL]},
            *({"role": "tool", "tool_call_id": "a", "content": f"{turn}{n}"} for n in (1, 2)),
        )
        for turn in "xyz"
    ]
    assert [step.answer for step in steps(*(m for turn in turns for m in turn))] == [
        "x1",
        "x2",
        "y1",
        "y2",
        "z1",
        "z2",
    ]


def test_answers_out_of_order_find_their_calls() -> None:
    second = {**CALL, "id": "b"}
    answers = [{"role": "tool", "tool_call_id": name, "content": name} for name in "ba"]
    assert [step.answer for step in steps({"role": "assistant", "tool_calls": [CALL, second]}, *answers)] == [
        "a",
        "b",
    ]


def test_answers_without_ids_come_in_the_order_of_the_calls() -> None:
    bare = {"function": CALL["function"]}
    answers = [{"role": "tool", "content": text} for text in ("first", "second")]
    found = steps({"role": "assistant", "tool_calls": [bare, bare]}, *answers)
    assert [step.answer for step in found] == ["first", "second"]


@pytest.mark.parametrize(
    "said", [{"is_error": True}, {"status": "error"}, {"error": {"message": "no"}}, {"isError": True}]
)
def test_an_answer_that_says_so_makes_a_refused_step(said: dict[str, Any]) -> None:
    (step,) = steps(
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "x", **said},
    )
    assert step.refused


def test_reasoning_is_not_words() -> None:
    parts = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "One."},
        {"type": "text", "text": "Two."},
    ]
    (step,) = steps({"role": "assistant", "content": parts, "reasoning_content": "Hm."})
    assert (step.tool, step.content) == (None, "One.\nTwo.")


def test_items_of_one_response_are_one_turn() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Both."}]}
    calls = [{"type": "function_call", "call_id": n, "name": n, "arguments": "{}"} for n in "ab"]
    assert [step.tool for step in steps({"type": "reasoning"}, said, *calls)] == ["a", "b"]


@pytest.mark.parametrize(
    ("item", "tool"),
    [
        ({"type": "web_search_call", "id": "w", "action": {"query": "gcd"}}, "web_search"),
        ({"type": "local_shell_call", "call_id": "s", "action": {"command": ["ls"]}}, "local_shell"),
        ({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}, "patch"),
        ({"type": "mcp_call", "id": "m", "name": "fetch", "arguments": "{}", "output": "page"}, "fetch"),
    ],
)
def test_tools_of_the_server_are_calls(item: dict[str, Any], tool: str) -> None:
    (step,) = steps(item)
    assert step.tool == tool and step.answer == item.get("output", "")


@pytest.mark.parametrize("role", ["developer", "system"])
def test_instructions_are_not_steps(role: str) -> None:
    assert steps({"role": role, "content": "Go on."}, {"role": "assistant", "content": DONE}) == (
        TraceStep(None, DONE),
    )


@pytest.mark.parametrize(
    "answer",
    [
        {"response": {"choices": [{"message": {"role": "assistant", "content": DONE}}]}},
        {"response": json.dumps({"choices": [{"message": {"role": "assistant", "content": DONE}}]})},
        {"response": {"role": "assistant", "type": "message", "content": [{"type": "text", "text": DONE}]}},
        {"response": {"message": {"role": "assistant", "content": DONE}}},
        {"response": {"status_code": 200, "body": {"choices": [{"message": {"content": DONE}}]}}},
        {"response": {"candidates": [{"content": {"role": "model", "parts": [{"text": DONE}]}}]}},
        {
            "response": {
                "object": "response",
                "output": [{"type": "message", "role": "assistant", "content": DONE}],
            }
        },
        {"choices": [{"message": {"role": "assistant", "content": DONE}}]},
        {"completion": DONE},
        {"output": {"role": "assistant", "content": DONE}},
    ],
)
def test_a_logged_answer_is_the_last_message_however_it_is_kept(answer: dict[str, Any]) -> None:
    messages = openai_messages()[:-1]
    record = {"messages": messages, **answer}
    assert chat.read(record).steps == chat.read({"messages": openai_messages()}).steps
    inside = {"request": {"messages": messages, "model": "small"}, **answer}
    assert chat.read(inside).steps == chat.read(record).steps and chat.read(inside).version == "small"


def test_an_answer_that_the_messages_hold_too_counts_once() -> None:
    whole = {"messages": openai_messages()}
    assert chat.read({**whole, "response": openai_messages()[-1]}).steps == chat.read(whole).steps


def calls_of_a_run(**beside: Any) -> list[dict[str, Any]]:
    """A line for each model call of the run."""
    messages = openai_messages()
    asked = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    return [
        {
            "id": f"call-{number}",
            "messages": messages[:number],
            "response": {"choices": [{"message": messages[number]}]},
            **beside,
        }
        for number in asked
    ]


def test_each_history_begins_with_the_history_and_the_answer_before_it() -> None:
    calls = [call_of(record) for record in calls_of_a_run(session_id="s")]
    for before, after in pairwise(calls):
        begin = (*before.history, before.answer)
        assert after.history[: len(begin)] == begin
    assert [call.session for call in calls] == ["s"] * 4 and calls[0].own == "call-2"
    assert [call.earlier for call in calls] == [0, 1, 2, 3]


def test_equal_messages_have_equal_hashes_in_every_dialect() -> None:
    plain = call_of(calls_of_a_run()[1]).history
    noisy = [
        {**message, "id": "x", "timestamp": 3, "reasoning_content": "Hm."} for message in openai_messages()
    ]
    assert call_of({"messages": noisy[:4], "response": noisy[4]}).history == plain
    assert all(0 <= number < 1 << 64 for number in plain) and len(set(plain)) == 4


def test_a_call_may_name_the_call_that_it_goes_on_from() -> None:
    found = call_of(
        {
            "input": [TASK],
            "previous_response_id": "r-1",
            "response": {
                "id": "r-2",
                "object": "response",
                "output": [{"type": "message", "role": "assistant", "content": DONE}],
            },
        }
    )
    assert (found.parent, found.own) == ("r-1", "r-2")


def test_a_record_with_its_answer_among_the_messages_is_gone_on_from_only_as_a_whole() -> None:
    messages = openai_messages()
    short, whole = call_of({"messages": messages[:5]}), call_of({"messages": messages})
    other = call_of({"messages": [*messages[:4], {"role": "assistant", "content": "I give up."}]})
    assert whole.history[:5] == short.history != other.history and short.answer is None


def test_a_record_that_ends_with_a_tools_answer_is_a_whole_run() -> None:
    assert chat.read({"messages": openai_messages()[:-1]}).call is None


def trace(**beside: Any) -> Trace:
    return chat.read({"messages": openai_messages(), **beside})


@pytest.mark.parametrize("key", ["created", "created_at", "timestamp", "start_time"])
def test_a_time_is_found_by_its_usual_names(key: str) -> None:
    assert trace(**{key: 1700000000}).time == 1700000000.0


def test_tasks_are_found_by_their_usual_names() -> None:
    assert trace(instance_id="gcd-1").task == "gcd-1" and trace(task_id=3).task == "3"
