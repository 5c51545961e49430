"""The endpoint, as the vendors' own client and plain HTTP see it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from skillpress.core.chat_messages import ToolCall
from skillpress.core.trajectory import WeightSpan
from skillpress.rollouts.programs.endpoint import RETRIES, Endpoint
from skillpress.rollouts.programs.requests import Asked, Reply
from skillpress.rollouts.programs.session import Session, Waiting, engine_failed
from tests.skillpress.rollouts.programs.conftest import played

pytestmark = pytest.mark.heavy  # the vendor's client starts `uname` at its first request
HELLO: Any = [{"role": "user", "content": "hello"}]
TOOLS: Any = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
]
CALLING = Reply("let me see", (ToolCall("look", {"at": "it"}, "call_1"),), "hm", "tool_calls", 5, 7)


def client_of(endpoint: Endpoint, session: Session, **settings: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{endpoint.address}/e/{session.key}/v1", api_key=session.key, **settings)


def echo(asked: Asked) -> Reply:
    return Reply(f"you said {asked.request.messages[-1].content}", prompt_tokens=2, response_tokens=3)


def late(release: threading.Event) -> Callable[[Asked], Reply]:
    """Says, once released, how often the same was asked before."""

    def answer(asked: Asked) -> Reply:
        release.wait(30)
        return Reply(str(asked.occurrence))

    return answer


def post(endpoint: Endpoint, session: Session, path: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(f"{endpoint.address}/e/{session.key}/v1{path}", json=body, headers=headers, timeout=30)


def test_a_chat_is_answered_and_its_tokens_are_counted(endpoint: Endpoint) -> None:
    with played(endpoint, echo) as (session, asked):
        said = client_of(endpoint, session).chat.completions.create(model="any", messages=HELLO)
    assert said.choices[0].message.content == "you said hello"
    assert said.choices[0].finish_reason == "stop"
    assert said.usage is not None and (said.usage.prompt_tokens, said.usage.completion_tokens) == (2, 3)
    assert [each.occurrence for each in asked] == [0]


def test_calls_of_tools_and_the_thought_come_back_as_the_client_sends_them_again(endpoint: Endpoint) -> None:
    with played(endpoint, lambda asked: CALLING if len(asked.request.messages) == 1 else echo(asked)) as (
        session,
        asked,
    ):
        client = client_of(endpoint, session)
        first = client.chat.completions.create(model="any", messages=HELLO, tools=TOOLS).choices[0].message
        assert first.tool_calls is not None
        call: Any = first.tool_calls[0]
        assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"at": "it"})
        answer: Any = {"role": "tool", "tool_call_id": call.id, "content": "a stone"}
        client.chat.completions.create(model="any", messages=[*HELLO, first, answer], tools=TOOLS)
    _, assistant, tool = asked[1].request.messages
    assert assistant.calls == CALLING.calls and assistant.content == "let me see"
    assert tool.content == "a stone" and tool.answers == "call_1"
    assert asked[1].request.tools == tuple(TOOLS)


@pytest.mark.parametrize("reply", [Reply("some words", response_tokens=3), CALLING])
def test_a_stream_says_the_same_as_an_answer(endpoint: Endpoint, reply: Reply) -> None:
    with played(endpoint, lambda asked: reply) as (session, _):
        client = client_of(endpoint, session)
        whole = client.chat.completions.create(model="any", messages=HELLO).choices[0]
        with client.chat.completions.stream(model="any", messages=HELLO) as stream:
            streamed = stream.get_final_completion().choices[0]
    assert streamed.message.content == whole.message.content
    assert streamed.finish_reason == whole.finish_reason
    mine, its = whole.message.tool_calls or [], streamed.message.tool_calls or []
    assert [each.function.arguments for each in its] == [each.function.arguments for each in mine]  # type: ignore[union-attr]


def test_the_form_of_responses_is_served_with_and_without_a_stream(endpoint: Endpoint) -> None:
    with played(endpoint, lambda asked: CALLING if len(asked.request.messages) == 1 else echo(asked)) as (
        session,
        asked,
    ):
        client = client_of(endpoint, session)
        tools: Any = [
            {
                "type": "function",
                "name": "look",
                "parameters": {"type": "object", "properties": {}},
                "strict": True,
            }
        ]
        first = client.responses.create(model="any", input="hello", tools=tools)
        items: Any = [{"role": "user", "content": "hello"}, *(item.to_dict() for item in first.output)]
        items.append({"type": "function_call_output", "call_id": "call_1", "output": "a stone"})
        with client.responses.stream(model="any", input=items, tools=tools) as stream:
            second = stream.get_final_response()
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    assert second.output_text == "you said a stone"
    _, assistant, _ = asked[1].request.messages
    assert (assistant.content, assistant.calls, assistant.thought) == ("let me see", CALLING.calls, "hm")


def test_the_form_of_messages_is_served(endpoint: Endpoint) -> None:
    with played(endpoint, lambda asked: CALLING if len(asked.request.messages) == 2 else echo(asked)) as (
        session,
        asked,
    ):
        body: dict[str, Any] = {"model": "any", "max_tokens": 9, "system": "be brief", "messages": HELLO}
        body["tools"] = [{"name": "look", "input_schema": {"type": "object"}}]
        first = httpx.post(
            f"{endpoint.address}/v1/messages", json=body, headers={"x-api-key": session.key}
        ).json()
        result = {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [{"type": "text", "text": "a stone"}],
        }
        body["messages"] = [
            *HELLO,
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]},
        ]
        second = post(endpoint, session, "/messages", body).json()
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    assert first["stop_reason"] == "tool_use" and second["content"][0]["text"] == "you said a stone"
    assert [message.role for message in asked[1].request.messages] == ["system", "user", "assistant", "tool"]
    assert asked[1].request.max_tokens == 9


def test_several_responses_to_one_request_are_records_of_their_own(endpoint: Endpoint) -> None:
    with played(endpoint, lambda asked: Reply(str(asked.occurrence))) as (session, asked):
        said = client_of(endpoint, session).chat.completions.create(model="any", messages=HELLO, n=3)
    assert [choice.message.content for choice in said.choices] == ["0", "1", "2"]
    assert len({each.draw for each in asked}) == 3


def test_an_answer_says_which_weights_drew_its_tokens(endpoint: Endpoint) -> None:
    reply = Reply("words", weights=(WeightSpan(4, 0, 2), WeightSpan(5, 2, 3)))
    with played(endpoint, lambda asked: reply) as (session, _):
        said = post(endpoint, session, "/chat/completions", {"messages": HELLO}).json()
    assert said["skillpress"]["weights"] == [
        [{"version": 4, "start": 0, "end": 2}, {"version": 5, "start": 2, "end": 3}]
    ]


def test_a_marked_retry_gets_the_same_answer_and_an_unmarked_one_is_a_new_call(endpoint: Endpoint) -> None:
    with played(endpoint, lambda asked: Reply(str(asked.occurrence))) as (session, asked):
        body = {"messages": HELLO}
        first = post(endpoint, session, "/chat/completions", body).json()
        marked = post(endpoint, session, "/chat/completions", body, **{"x-stainless-retry-count": "1"}).json()
        unmarked = post(endpoint, session, "/chat/completions", body).json()
    contents = [said["choices"][0]["message"]["content"] for said in (first, marked, unmarked)]
    assert contents == ["0", "0", "1"] and len(asked) == 2


def test_a_client_that_gives_up_and_asks_again_gets_the_answer_of_its_first_request(
    endpoint: Endpoint,
) -> None:
    release = threading.Event()
    with played(endpoint, late(release)) as (session, asked):
        threading.Timer(1.0, release.set).start()
        client = client_of(endpoint, session, timeout=0.5, max_retries=5)
        said = client.chat.completions.create(model="any", messages=HELLO)
    assert said.choices[0].message.content == "0" and len(asked) == 1


def test_a_stream_whose_client_has_gone_is_recorded_once_and_kept_for_its_retry(endpoint: Endpoint) -> None:
    release = threading.Event()
    with played(endpoint, late(release)) as (session, asked):
        body = json.dumps({"messages": HELLO, "stream": True}).encode()
        path = f"/e/{session.key}/v1/chat/completions"
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}"
        with socket.create_connection(("127.0.0.1", int(endpoint.address.rpartition(":")[2]))) as client:
            client.sendall(f"{head}\r\n\r\n".encode() + body)
            while not asked:
                time.sleep(0.01)
        release.set()
        again = post(endpoint, session, "/chat/completions", {"messages": HELLO}, **{RETRIES: "1"})
        other = post(endpoint, session, "/chat/completions", {"messages": HELLO})
    assert again.json()["choices"][0]["message"]["content"] == "0"
    assert other.status_code == 200 and [each.occurrence for each in asked] == [0, 1]


def test_a_repetition_without_a_mark_joins_a_request_whose_client_has_gone(endpoint: Endpoint) -> None:
    release, body = threading.Event(), {"messages": HELLO}
    with played(endpoint, late(release)) as (session, asked):
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{endpoint.address}/e/{session.key}/v1/messages", json=body, timeout=0.3)
            time.sleep(0.2)  # the server hears that the client has gone
        threading.Timer(0.5, release.set).start()
        again = post(endpoint, session, "/messages", body)
        new = post(endpoint, session, "/messages", body)
    assert [said.json()["content"][0]["text"] for said in (again, new)] == ["0", "1"]
    assert [each.occurrence for each in asked] == [0, 1]


def test_the_head_of_the_base_is_answered(endpoint: Endpoint) -> None:
    session = endpoint.open()
    assert httpx.head(f"{endpoint.address}/e/{session.key}").status_code == 200
    assert httpx.head(f"{endpoint.address}/").status_code == 200


def test_parallel_requests_are_each_answered_once(endpoint: Endpoint) -> None:
    with played(endpoint, echo) as (session, asked), ThreadPoolExecutor(8) as threads:
        client = client_of(endpoint, session)

        def ask(number: int) -> str | None:
            messages: Any = [{"role": "user", "content": str(number)}]
            return client.chat.completions.create(model="any", messages=messages).choices[0].message.content

        said = list(threads.map(ask, range(32)))
    assert said == [f"you said {number}" for number in range(32)] and len(asked) == 32


def test_the_draw_of_a_request_depends_on_what_is_asked_and_not_on_ids_or_order(endpoint: Endpoint) -> None:
    with played(endpoint, echo) as (session, asked):
        for identity, text in (("call_x", "a"), ("call_y", "b"), ("call_z", "a")):
            called = {
                "id": identity,
                "type": "function",
                "function": {"name": "look", "arguments": '{"at": 1}'},
            }
            messages = [
                {"role": "user", "content": text},
                {"role": "assistant", "content": None, "tool_calls": [called]},
            ]
            post(endpoint, session, "/chat/completions", {"messages": messages})
    draws = [each.draw for each in asked]
    assert draws[0].split("/")[0] == draws[2].split("/")[0] != draws[1].split("/")[0]
    assert [each.occurrence for each in asked] == [0, 0, 1]


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"at": "\\ud800"}', '{"at": 1e999}'])
def test_arguments_that_no_prompt_can_show_as_an_object_come_as_they_are(
    endpoint: Endpoint, arguments: str
) -> None:
    called = {"id": "call_x", "type": "function", "function": {"name": "look", "arguments": arguments}}
    with played(endpoint, echo) as (session, asked):
        post(
            endpoint,
            session,
            "/chat/completions",
            {"messages": [{"role": "assistant", "tool_calls": [called]}]},
        )
    (call,) = asked[0].request.messages[0].calls
    assert call.arguments == {"raw": [1] if arguments == "[1]" else arguments}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("/chat/completions", {"messages": []}, "messages"),
    ("/chat/completions", {"messages": HELLO, "response_format": {"type": "json_object"}}, "response_format"),
    ("/chat/completions", {"messages": HELLO, "logit_bias": {"5": 1}}, "logit_bias"),
    ("/chat/completions", {"messages": HELLO, "presence_penalty": 1}, "presence_penalty"),
    ("/chat/completions", {"messages": HELLO, "logprobs": True}, "logprobs"),
    ("/chat/completions", {"messages": HELLO, "max_tokens": -1}, "max_tokens"),
    (
        "/chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0].content",
    ),
    ("/chat/completions", {"messages": [{"role": "wizard", "content": "x"}]}, "messages[0]"),
    (
        "/chat/completions",
        {"messages": HELLO, "tool_choice": {"type": "function", "function": {"name": "look"}}},
        "tool_choice",
    ),
    ("/responses", {"input": "x", "previous_response_id": "resp_1"}, "previous_response_id"),
    ("/responses", {"input": "x", "text": {"format": {"type": "json_schema"}}}, "text"),
    ("/responses", {"input": "x", "tools": [{"type": "file_search"}]}, "tools"),
    ("/messages", {"messages": HELLO, "output_config": {"format": {"type": "json_schema"}}}, None),
]


@pytest.mark.parametrize(("path", "body", "field"), REFUSED)
def test_what_would_leave_the_policys_distribution_is_refused_by_name(
    endpoint: Endpoint, path: str, body: dict[str, Any], field: str | None
) -> None:
    with played(endpoint, echo) as (session, asked):
        found = post(endpoint, session, path, body)
    assert found.status_code == 400 and found.json()["error"].get("param") == field
    assert not asked


def test_the_form_of_messages_refuses_in_its_own_words(endpoint: Endpoint) -> None:
    with played(endpoint, echo) as (session, _):
        body = {"messages": HELLO, "tool_choice": {"type": "tool", "name": "look"}}
        found = post(endpoint, session, "/messages", body)
    assert found.status_code == 400
    assert found.json()["type"] == "error" and found.json()["error"]["type"] == "invalid_request_error"


def test_settings_that_are_the_trainers_are_overruled_and_said(endpoint: Endpoint) -> None:
    with played(endpoint, echo) as (session, asked):
        body = {"messages": HELLO, "temperature": 0.1, "seed": 3, "tool_choice": "required"}
        found = post(endpoint, session, "/chat/completions", body)
    assert (
        found.status_code == 200
        and found.headers["x-skillpress-overruled"] == "seed, temperature, tool_choice"
    )
    assert asked[0].request.overruled == ("seed", "temperature", "tool_choice")


def test_a_field_that_the_endpoint_does_not_know_is_named_and_a_known_one_is_not(endpoint: Endpoint) -> None:
    with played(endpoint, echo) as (session, _):
        body = {
            "input": "hello", "store": False, "reasoning": {"effort": "low"}, "include": [], "temperature": 0,
            "text": {"format": {"type": "text"}, "verbosity": "low"}, "tool_choice": "auto",
        }  # fmt: skip
        found = post(endpoint, session, "/responses", body)
    assert found.headers["x-skillpress-overruled"] == "reasoning, temperature, text.verbosity"


def test_late_requests_are_gone_and_foreign_keys_are_unknown(endpoint: Endpoint) -> None:
    session = endpoint.open()
    endpoint.end(session)
    assert post(endpoint, session, "/chat/completions", {"messages": HELLO}).status_code == 410
    foreign = httpx.get(f"{endpoint.address}/v1/models", headers={"authorization": "Bearer sk-none"})
    assert foreign.status_code == 401


def test_a_request_that_waits_when_the_engine_fails_is_told_to_ask_again(endpoint: Endpoint) -> None:
    session = endpoint.open()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(post, endpoint, session, "/chat/completions", {"messages": HELLO})
        assert isinstance(session.next(30), Waiting)
        endpoint.end(session, engine_failed)
    assert waiting.result().status_code == 503 and waiting.result().headers["x-should-retry"] == "true"


def test_a_program_that_starts_again_is_answered_as_before_as_far_as_it_asks_the_same(
    endpoint: Endpoint,
) -> None:
    with played(endpoint, lambda asked: Reply(str(len(asked.request.messages)))) as (session, asked):
        ask = {"messages": HELLO}
        first = post(endpoint, session, "/chat/completions", ask).json()
        endpoint.renew(session)
        again = post(endpoint, session, "/chat/completions", ask).json()
        post(endpoint, session, "/chat/completions", {"messages": [*HELLO, *HELLO]})
    assert again["choices"] == first["choices"]
    assert [len(each.request.messages) for each in asked] == [1, 2]


def test_a_late_request_of_the_last_program_is_not_one_of_the_new_program(endpoint: Endpoint) -> None:
    ask = {"messages": HELLO}
    with played(endpoint, lambda asked: Reply(str(asked.occurrence))) as (session, asked):
        first = f"{endpoint.address}/e/{session.key}/v1/chat/completions"
        before = httpx.post(first, json=ask, timeout=30).json()
        endpoint.renew(session)
        late = httpx.post(first, json=ask, timeout=30)
        again = post(endpoint, session, "/chat/completions", ask).json()
    assert late.status_code == 410
    assert again["choices"] == before["choices"] and len(asked) == 1


def test_what_the_last_program_asked_without_an_answer_is_forgotten(endpoint: Endpoint) -> None:
    session = endpoint.open()
    with ThreadPoolExecutor(2) as threads:
        left = threads.submit(post, endpoint, session, "/chat/completions", {"messages": HELLO})
        while not session.queued():
            time.sleep(0.01)
        endpoint.renew(session)
        assert left.result().status_code == 410 and session.next(0.0) is None
        new = threads.submit(post, endpoint, session, "/chat/completions", {"messages": HELLO})
        heard = session.next(30)
        assert isinstance(heard, Waiting) and heard.asked.occurrence == 0
        session.answer(heard, Reply("new"))
        assert new.result().json()["choices"][0]["message"]["content"] == "new"
    endpoint.end(session)


def test_models_lists_the_policy(endpoint: Endpoint) -> None:
    session = endpoint.open()
    for place in (f"/e/{session.key}/v1/models", "/v1beta/models"):
        found = httpx.get(f"{endpoint.address}{place}", headers={"x-goog-api-key": session.key}).json()
        assert [model["id"] for model in found["data"]] == ["policy"]
        assert [model["name"] for model in found["models"]] == ["models/policy"]
