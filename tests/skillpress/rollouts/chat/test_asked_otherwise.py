"""Fields of a user's own, streams, several choices, and throttling under other statuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.errors import UserError
from skillpress.rollouts.chat.answers import read_reply
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.connection import ServerReply
from skillpress.rollouts.chat.outcomes import Failed, ModelAnswer, TokenUsage, Unsupported
from skillpress.rollouts.chat.server import ChatError, ChatServer
from tests.support.rollouts.chat_server import Manner, chat_server

OWN = {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"}


def ask(tmp_path: Path, manner: Manner, **server: Any) -> tuple[ModelAnswer, list[dict[str, Any]]]:
    """(the answer to one question, the requests that the server received)"""
    with chat_server(manner=manner) as (url, heard):
        client = ChatClient(
            ChatServer(url, "toy", deadline_seconds=10.0, **server), Sampling(), tmp_path / "answers.jsonl"
        )
        try:
            return client.ask("now", 0, "task 0"), heard.bodies
        finally:
            client.close()


def chunk(index: int, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    said = {"choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}
    return f"data: {json.dumps(said)}\n\n".encode()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
TWO = [
    chunk(1, {"role": "assistant", "content": "no"}),
    chunk(0, {"role": "assistant", "content": "ye"}),
    chunk(1, {"content": "pe"}, "length"),
    chunk(0, {"content": "s"}, "stop"),
    b"data: [DONE]\n\n",
]


def stream(number: int, body: dict[str, Any], good: dict[str, Any]) -> Iterator[bytes]:
    yield HEAD
    yield from TWO[:-1]
    if body.get("stream_options", {}).get("include_usage"):
        usage = {"prompt_tokens": 7, "completion_tokens": 2}
        yield f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode()
    yield TWO[-1]


def streams_alone(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
    if body.get("stream"):
        return stream(number, body, good)
    return 400, {}, {"error": {"message": "This model only supports streaming, set stream to true"}}


def test_fields_of_ones_own_are_in_every_request(tmp_path: Path) -> None:
    _, (body,) = ask(tmp_path, lambda number, body, good: good, body=OWN)
    assert {name: body[name] for name in OWN} == OWN and "stream" not in body


def test_a_field_of_ones_own_that_is_refused_ends_with_the_servers_words(tmp_path: Path) -> None:
    """It is never left out: an evaluation's record says that it was sent."""

    def refuse(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        return 400, {}, {"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}}

    with pytest.raises(
        ChatError, match=r"refused with HTTP 400: Unrecognized .*; --body sends reasoning_effort$"
    ):
        ask(tmp_path, refuse, body=OWN)


def test_a_server_that_only_streams_is_asked_for_streams(tmp_path: Path) -> None:
    answer, (body,) = ask(tmp_path, streams_alone, stream=True)
    assert (answer.text, answer.ended, answer.usage.prompt_tokens) == ("yes", "whole", 7)
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True}


def test_a_server_that_only_streams_says_so_and_the_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match=r"only supports streaming.*--stream asks for streams"):
        ask(tmp_path, streams_alone)


def test_a_server_that_refuses_to_count_a_streams_tokens_is_asked_without(tmp_path: Path) -> None:
    def manner(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        if "stream_options" in body:
            return 400, {}, {"error": {"message": "Unknown parameter: 'stream_options'"}}
        return stream(number, body, good)

    answer, bodies = ask(tmp_path, manner, stream=True)
    assert answer.text == "yes" and answer.usage.prompt_tokens is None and len(bodies) == 2


def test_a_server_that_cannot_stream_may_answer_plainly(tmp_path: Path) -> None:
    answer, _ = ask(tmp_path, lambda number, body, good: good, stream=True)
    assert answer.ended == "whole" and answer.text


def test_of_two_choices_in_a_stream_the_one_with_the_lower_index_counts(tmp_path: Path) -> None:
    answer, (body,) = ask(tmp_path, stream)
    assert "stream" not in body and (answer.text, answer.ended) == ("yes", "whole")


def test_choices_in_one_chunk_or_one_reply_are_told_apart_by_their_index() -> None:
    both = [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]
    body = f"data: {json.dumps({'choices': both})}\n\ndata: [DONE]\n\n"
    assert read_reply(ServerReply(200, {}, body.encode()), {}) == ModelAnswer("a")
    whole = {"choices": [{"index": n, "message": {"content": text}} for n, text in ((1, "b"), (0, "a"))]}
    assert read_reply(ServerReply(200, {}, json.dumps(whole).encode()), {}) == ModelAnswer("a")


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize(
    "error",
    [
        {"code": "ThrottlingException", "message": "Rate exceeded"},
        {"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded, please try again later."},
        {"type": "rate_limit_error", "message": "slow"},
        {"message": "Too many requests, please slow down"},
        {"message": "The server is busy. Please try again later."},
        {"message": "Concurrency limit of 4 reached"},
        {"message": "Too many tokens, please wait before trying again."},
        {"message": "The model is currently overloaded. Try again in a few seconds"},
        {"message": "Request rate increased too quickly"},
        {"message": "QPS limit exceeded"},
        {"message": "Reached max concurrent requests"},
        {"message": "No capacity available for this model"},
        {"message": "too many pending requests"},
    ],
)
def test_throttling_is_a_retry_whatever_its_status(status: int, error: dict[str, str]) -> None:
    outcome = read_reply(ServerReply(status, {"retry-after": "3"}, json.dumps({"error": error}).encode()), {})
    assert isinstance(outcome, Failed)
    assert (outcome.again, outcome.pause, outcome.everyone) == (True, 3.0, True)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "temperature must be at most 2"},
        {"code": "insufficient_quota", "message": "You are throttled: no credit"},
        {"message": "invalid role 'robot'"},
        {"message": "temperature: please correct it and try again"},
    ],
)
def test_other_errors_of_a_request_are_no_throttling(error: dict[str, str]) -> None:
    outcome = read_reply(ServerReply(400, {}, json.dumps({"error": error}).encode()), {"temperature": 3})
    assert isinstance(outcome, Failed) and not outcome.again


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ("seed", "Parameter seed is invalid for this model"),
        ("seed", "The parameter seed can not be used"),
        ("seed", "no such parameter: seed"),
        ("stop", "Remove stop from the request"),
        ("top_p", "Use either temperature or top_p but not both"),
        ("max_tokens", "max_completion_tokens is required"),
        ("max_tokens", "Please provide max_completion_tokens rather than max_tokens"),
        ("stream", "Streaming is not available here: not supported"),
        ("stream_options", "stream options are not supported"),
    ],
)
def test_a_parameter_is_refused_in_many_words(refused: str, said: str) -> None:
    sent = dict.fromkeys(
        ("max_tokens", "temperature", "top_p", "seed", "stop", "stream", "stream_options"), 1
    )
    outcome = read_reply(ServerReply(400, {}, json.dumps({"error": {"message": said}}).encode()), sent)
    assert outcome == Unsupported(refused, f"HTTP 400: {said}")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "The prompt is too large"),
        (400, "Please shorten your conversation"),
        (400, "Total number of tokens is 5000, more than 4096"),
        (400, "This request requires 9000 tokens, but only 4096 are available"),
        (400, "token limit exceeded"),
        (413, "Payload Too Large"),
    ],
)
def test_a_prompt_is_too_long_in_many_words(status: int, said: str) -> None:
    outcome = read_reply(ServerReply(status, {}, json.dumps({"error": {"message": said}}).encode()), {})
    assert outcome == ModelAnswer("", ended="prompt_too_long")


def test_a_request_beyond_the_accounts_rate_is_no_step() -> None:
    said = "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000"
    assert isinstance(read_reply(ServerReply(413, {}, json.dumps({"error": said}).encode()), {}), Failed)


def test_a_server_that_refuses_streams_is_not_said_to_need_another_option(tmp_path: Path) -> None:
    def manner(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        return (400, {}, {"error": "Streaming is not supported"}) if "stream" in body else good

    with pytest.raises(ChatError, match=r"Streaming is not supported; leave --stream out$"):
        ask(tmp_path, manner, stream=True)


PIECES = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("He", "llo")]
LAST = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def events(*chunks: Any, end: str = "\n", indent: int | None = None) -> str:
    """A stream; an indented chunk takes many ``data`` lines."""
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk, indent=indent) for chunk in chunks]
    blocks = ["".join(f"data: {line}{end}" for line in text.split("\n")) for text in texts]
    return "".join(block + end for block in blocks)


@pytest.mark.parametrize(
    "body",
    [
        events(*PIECES, LAST),
        events(*PIECES, LAST, end="\r\n", indent=1),
        events(*PIECES, LAST, end="\r"),
        events("", *PIECES, "", LAST, "", "[DONE]", ""),
        events(*PIECES, {"choices": [], "usage": {"prompt_tokens": 3}}),
        events(*PIECES, LAST).replace("\n\n", "\n"),
        events(
            *PIECES, {"choices": [{"delta": {}, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
        ),
        events(*PIECES, {"choices": [{"index": "1", "delta": {"content": "no"}}]}, LAST),
    ],
    ids=["no DONE", "many lines", "CR", "empty data", "usage last", "no gaps", "whole message", "text index"],
)
def test_a_stream_is_read_however_its_lines_are_written(body: str) -> None:
    outcome = read_reply(ServerReply(200, {}, body.encode()), {})
    assert isinstance(outcome, ModelAnswer) and (outcome.text, outcome.ended) == ("Hello", "whole")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (events(*PIECES), "a stream that broke off"),
        (events("[DONE]"), "no choices"),
        (events({"message": "the backend left"}, "[DONE]"), "the backend left"),
        (events(PIECES[0]) + "event: error\n" + events({"message": "the backend left"}), "the backend left"),
        ("event: error\ndata: the backend left\n\n", "the backend left"),
    ],
    ids=["broken off", "nothing", "other chunk", "error event", "error in words"],
)
def test_a_stream_without_its_end_is_a_failure_that_says_so(body: str, says: str) -> None:
    """It is the right address, whatever went wrong there."""
    outcome = read_reply(ServerReply(200, {}, body.encode()), {})
    assert isinstance(outcome, Failed) and says in outcome.reason
    assert outcome.again and not outcome.foreign


def test_a_stream_of_an_answer_that_is_empty_is_an_answer() -> None:
    first = {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}
    assert read_reply(ServerReply(200, {}, events(first, LAST, "[DONE]").encode()), {}) == ModelAnswer("")


def test_a_streams_counts_may_stand_in_its_choice() -> None:
    last = {"choices": [{**LAST["choices"][0], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}]}
    outcome = read_reply(ServerReply(200, {}, events(*PIECES, last).encode()), {})
    assert isinstance(outcome, ModelAnswer) and outcome.usage == TokenUsage(3, 2)


def test_a_server_may_ask_for_a_retry_by_a_header() -> None:
    body = json.dumps({"error": {"message": "the shard moved"}}).encode()
    found = [read_reply(ServerReply(400, {"x-should-retry": said}, body), {}) for said in ("true", "false")]
    assert [isinstance(outcome, Failed) and outcome.again for outcome in found] == [True, False]


@pytest.mark.parametrize("value", ["socks5://127.0.0.1:1", "socks://127.0.0.1:1", "http://127.0.0.1:1"])
def test_a_server_on_this_machine_is_asked_directly(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    monkeypatch.setenv("NO_PROXY", "[::1],fe80::/10")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    assert ask(tmp_path, lambda number, body, good: good)[0].ended == "whole"


def test_another_server_is_refused_with_the_variable_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    with pytest.raises(UserError, match=r"^SSL_CERT_FILE: .*gone\.pem is not a file with certificates"):
        ChatClient(ChatServer("https://model.example.com/v1", "toy"), Sampling(), tmp_path / "answers.jsonl")
