"""Any reply of a server is read as an answer, a failure or an unsupported parameter, whatever it contains."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skillpress.rollouts.chat.answers import parsed, read_reply
from skillpress.rollouts.chat.client import read_offers
from skillpress.rollouts.chat.connection import ServerReply
from skillpress.rollouts.chat.form import OMITTABLE
from skillpress.rollouts.chat.outcomes import Failed, ModelAnswer, Unsupported

SENT = {"max_tokens": 64, "temperature": 0.4, "top_p": 0.9, "top_k": 20, "seed": 1}
NAMES = (
    "error", "errors", "choices", "message", "delta", "content", "text", "type", "code", "param", "detail",
    "loc", "finish_reason", "reasoning", "reasoning_content", "refusal", "tool_calls", "usage",
    "prompt_tokens", "data", "id", "object",
)  # fmt: skip
WORDS = (
    "error",
    "length",
    "stop",
    "text",
    "thinking",
    "seed",
    "not supported",
    "prompt is too long",
    "\ud83d",
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(WORDS)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)
STATUSES = st.sampled_from((200, 200, 200, 204, 307, 400, 401, 404, 413, 422, 429, 500, 503, 529))
HEADERS = st.fixed_dictionaries(
    {"location": st.just("http://x/\x1b[2J")},
    optional={"retry-after": st.text(max_size=5) | st.floats().map(str)},
)


def check(reply: ServerReply) -> None:
    outcome = read_reply(reply, SENT)
    if isinstance(outcome, ModelAnswer):
        (outcome.text + outcome.thought).encode()  # it can be written to a file
        usage = (outcome.usage.prompt_tokens, outcome.usage.response_tokens)
        assert all(count is None or count >= 0 for count in usage)
    elif isinstance(outcome, Unsupported):
        assert outcome.parameter in OMITTABLE and outcome.reason.isprintable()
    else:
        assert isinstance(outcome, Failed) and outcome.reason.isprintable()
        assert outcome.pause is None or 0 <= outcome.pause < float("inf")
    read_offers(reply)


@given(STATUSES, HEADERS, VALUES)
def test_any_json_is_read(status: int, headers: dict[str, str], value: Any) -> None:
    check(ServerReply(status, headers, json.dumps(value).encode()))


@given(STATUSES, st.binary(max_size=40) | st.binary(max_size=40).map(lambda some: b"data: " + some))
def test_any_bytes_are_read(status: int, body: bytes) -> None:
    check(ServerReply(status, {}, body))


@given(st.lists(VALUES, max_size=5))
def test_any_stream_is_read(chunks: list[Any]) -> None:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    check(ServerReply(200, {}, "".join([*lines, "data: [DONE]\n\n"]).encode()))


@given(VALUES)
def test_an_error_is_never_an_answer_of_the_model(value: Any) -> None:
    """Only a prompt that is too long, or that a filter declined, becomes a step, and it contains no text."""
    outcome = read_reply(
        ServerReply(200, {}, json.dumps({"error": value or "none", "choices": [{}]}).encode()), SENT
    )
    assert not isinstance(outcome, ModelAnswer) or (outcome.text == "" and outcome.ended != "whole")


def streamed(*deltas: dict[str, Any]) -> dict[str, Any]:
    lines = [f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in deltas]
    (choice,) = parsed("".join([*lines, "data: [DONE]\n\n"]).encode())["choices"]
    return dict(choice["message"])


def test_fields_of_a_stream_that_are_null_again_and_again_say_nothing() -> None:
    first = {"role": "assistant", "content": "", "refusal": None}
    said = streamed(first, {"content": "a", "refusal": None}, {"content": None}, {"content": "b"})
    assert said == {"content": "ab", "refusal": None}


def test_objects_in_a_stream_are_not_added_up() -> None:
    calls = [{"function_call": {"name": "f"}}, {"function_call": {"arguments": "{}"}}]
    assert streamed(*calls) == {"function_call": {"arguments": "{}"}}


def test_a_stream_of_many_pieces_is_put_together_once() -> None:
    pieces = [{"content": "a" * 100}] * 20_000  # appending each piece to a text would copy gigabytes
    assert streamed(*pieces)["content"] == "a" * 2_000_000


def test_a_count_of_tokens_that_no_answer_can_have_is_none() -> None:
    usage = {"prompt_tokens": 10**400, "completion_tokens": 7}
    body = {"choices": [{"message": {"content": "a"}}], "usage": usage}
    outcome = read_reply(ServerReply(200, {}, json.dumps(body).encode()), SENT)
    assert isinstance(outcome, ModelAnswer)
    assert (outcome.usage.prompt_tokens, outcome.usage.response_tokens) == (None, 7)
