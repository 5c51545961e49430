"""Google's form of requests, and the counts and lists that clients ask for beside answers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from skillpress.core.chat_messages import Message, ToolCall
from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.forms.google import read
from skillpress.rollouts.programs.requests import Asked, RefusedRequestError, Reply
from skillpress.rollouts.programs.session import Session
from tests.skillpress.rollouts.programs.conftest import played

CALLS = (ToolCall("look", {"at": "it"}, "call_1"), ToolCall("look", {"at": "that"}, "call_2"))
CALLING = Reply("let me see", CALLS, "hm", "tool_calls", 5, 7)
HELLO: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
SCHEMA = {"type": "OBJECT", "properties": {"at": {"type": "STRING"}}}
TOOLS = [{"functionDeclarations": [{"name": "look", "description": "Look.", "parameters": SCHEMA}]}]


def post(endpoint: Endpoint, session: Session, method: str, body: Any) -> httpx.Response:
    url = f"{endpoint.address}/v1beta/models/any:{method}"
    return httpx.post(url, json=body, headers={"x-goog-api-key": session.key}, timeout=30)


def script(asked: Asked) -> Reply:
    return CALLING if asked.request.messages[-1].role == "user" else Reply("done", prompt_tokens=9)


def test_calls_come_back_as_the_client_sends_them_again(endpoint: Endpoint) -> None:
    with played(endpoint, script) as (session, asked):
        body = HELLO | {"tools": TOOLS, "systemInstruction": {"parts": [{"text": "be brief"}]}}
        first = post(endpoint, session, "generateContent", body).json()
        said = first["candidates"][0]["content"]
        results = [
            {"functionResponse": {"id": "call_1", "name": "look", "response": {"output": "a stone"}}},
            {"functionResponse": {"id": "call_2", "name": "look", "response": {"error": "dark"}}},
            {"text": "go on"},
        ]
        body["contents"] = [*HELLO["contents"], said, {"role": "user", "parts": results[:2]}]
        post(endpoint, session, "generateContent", body)
        body["contents"][-1] = {"role": "user", "parts": results}
        post(endpoint, session, "generateContent", body)
    assert first["candidates"][0]["finishReason"] == "STOP" and first["modelVersion"] == "any"
    assert first["usageMetadata"] == {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    system, user, assistant, *tools, words = asked[2].request.messages
    assert (system, user) == (Message("system", "be brief"), Message("user", "hello"))
    assert assistant == Message("assistant", "let me see", calls=CALLS, thought="hm")
    assert tools == [
        Message("tool", "a stone", answers="call_1"),
        Message("tool", '{"error": "dark"}', answers="call_2"),
    ]
    assert words == Message("user", "go on") and asked[1].request.messages[3:] == tuple(tools)
    (tool,) = asked[0].request.tools
    assert tool["function"]["parameters"] == {"type": "object", "properties": {"at": {"type": "string"}}}


def test_a_stream_says_the_same_as_an_answer(endpoint: Endpoint) -> None:
    with played(endpoint, script) as (session, _):
        whole = post(endpoint, session, "generateContent", HELLO).json()
        streamed = post(endpoint, session, "streamGenerateContent?alt=sse", HELLO)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    (line,) = [line for line in streamed.text.splitlines() if line]
    event = json.loads(line.removeprefix("data: "))
    assert event["candidates"][0]["content"] == whole["candidates"][0]["content"]


def test_limits_are_heard_and_what_is_not_is_said(endpoint: Endpoint) -> None:
    settings = {"temperature": 0, "topK": 64, "max_output_tokens": 3, "stopSequences": ["x"]}
    body = HELLO | {"generation_config": settings, "tools": [{"googleSearch": {}}], "safetySettings": [{}]}
    with played(endpoint, script) as (session, asked):
        found = post(endpoint, session, "generateContent", body)
    assert (asked[0].request.max_tokens, asked[0].request.stop) == (3, ("x",))
    said = found.headers["x-skillpress-overruled"].split(", ")
    assert said == [
        "generationConfig.temperature",
        "generationConfig.topK",
        "safetySettings",
        "tools.googleSearch",
    ]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"generationConfig": {"responseMimeType": "application/json"}}, "responseMimeType"),
        ({"generationConfig": {"presencePenalty": 1}}, "presencePenalty"),
        ({"toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["look"]}}}, "toolConfig"),
        ({"contents": [{"parts": [{"inlineData": {"data": ""}}]}]}, "only text"),
        ({"contents": []}, "contents"),
    ],
)
def test_what_is_not_served_is_refused_in_its_own_words(
    endpoint: Endpoint, changes: dict[str, Any], named: str
) -> None:
    found = post(endpoint, endpoint.open(), "generateContent", HELLO | changes)
    assert found.status_code == 400
    told = found.json()["error"]
    assert (told["code"], told["status"]) == (400, "INVALID_ARGUMENT") and named in told["message"]


def test_no_tool_is_shown_if_none_may_be_called_and_any_is_read_as_auto() -> None:
    for mode, shown in (("NONE", 0), ("ANY", 1), ("AUTO", 1)):
        config = {"functionCallingConfig": {"mode": mode}}
        request = read(HELLO | {"tools": TOOLS, "toolConfig": config})
        assert len(request.tools) == shown and ("tool_choice" in request.overruled) == (mode == "ANY")
    with pytest.raises(RefusedRequestError):
        read({"contents": [{"role": "narrator", "parts": []}]})


def test_tokens_are_estimated_by_those_of_the_last_answer_and_a_count_is_no_step(endpoint: Endpoint) -> None:
    text = "a long question " * 20
    question: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    asked_so: dict[str, Any] = {"contents": [{"parts": [{"text": text}]}]}
    with played(endpoint, lambda asked: Reply("done", prompt_tokens=100)) as (session, asked):
        url = f"{endpoint.address}/e/{session.key}/v1/messages"
        guessed = httpx.post(f"{url}/count_tokens", json=question).json()
        httpx.post(url, json=question | {"max_tokens": 4})
        counted = httpx.post(f"{url}/count_tokens", json=question).json()
        google = [
            post(endpoint, session, "countTokens", body).json()
            for body in (asked_so, {"generateContentRequest": asked_so})
        ]
    assert 75 < guessed["input_tokens"] < 100 and counted == {"input_tokens": 100}
    assert google == [{"totalTokens": 100}] * 2 and len(asked) == 1
