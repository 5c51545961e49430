"""What responses have beside functions: namespaces, custom tools, the vendor's own, developers' messages."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest

from skillpress.core.chat_messages import ToolCall
from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.requests import Asked, Reply
from tests.skillpress.rollouts.programs.conftest import played

pytestmark = pytest.mark.heavy  # the vendor's client starts `uname` at its first request
SPAWN = {"type": "function", "name": "spawn", "description": "begin", "parameters": {"type": "object"}}
OFFERED: Any = [
    {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}},
    {"type": "namespace", "name": "agents", "description": "others", "tools": [SPAWN]},
    {"type": "web_search"},
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "edits files",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    },
]
PATCH = "*** Begin Patch\n*** End Patch"
CALLS = (
    ToolCall("spawn", {"task": "x"}, "call_1"),
    ToolCall("apply_patch", {"input": PATCH}, "call_2"),
    ToolCall("look", {}, "call_3"),
)


def asks(
    endpoint: Endpoint, replies: list[Reply], inputs: list[Any], **wanted: Any
) -> tuple[list[Any], list[Asked]]:
    waiting = iter(replies)
    with played(endpoint, lambda asked: next(waiting)) as (session, asked):
        client = openai.OpenAI(base_url=f"{endpoint.address}/e/{session.key}/v1", api_key=session.key)
        found = [client.responses.create(model="any", input=each, tools=OFFERED, **wanted) for each in inputs]
    return found, asked


def test_a_namespace_is_shown_tool_by_tool_and_a_custom_tool_as_a_function_of_one_text(
    endpoint: Endpoint,
) -> None:
    _, asked = asks(endpoint, [Reply("fine")], ["hello"])
    shown = {tool["function"]["name"]: tool["function"] for tool in asked[0].request.tools}
    assert list(shown) == ["look", "spawn", "apply_patch"]
    assert shown["spawn"] == {name: SPAWN[name] for name in ("name", "description", "parameters")}
    assert shown["apply_patch"]["parameters"]["required"] == ["input"]
    assert shown["apply_patch"]["description"] == "edits files\n\nGrammar of the input (lark):\nstart: /.+/"


def test_a_search_of_the_vendor_is_left_out_and_said(endpoint: Endpoint) -> None:
    _, asked = asks(endpoint, [Reply("fine")], ["hello"])
    assert asked[0].request.overruled == ("tools.web_search",)


def test_calls_come_back_in_the_kind_of_their_tool_and_are_read_again_as_they_were(
    endpoint: Endpoint,
) -> None:
    (first,), _ = asks(endpoint, [Reply("", CALLS, finish="tool_calls")], ["hello"])
    spawn, patch, look = first.output
    assert (spawn.type, spawn.namespace, look.type) == ("function_call", "agents", "function_call")
    assert (patch.type, patch.input, patch.call_id) == ("custom_tool_call", PATCH, "call_2")
    assert getattr(look, "namespace", None) is None
    again: Any = [
        {"role": "user", "content": "hello"},
        *(item.to_dict() for item in first.output),
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
    ]
    _, asked = asks(endpoint, [Reply("fine")], [again])
    _, assistant, tool = asked[0].request.messages
    assert assistant.calls == CALLS and (tool.role, tool.content, tool.answers) == ("tool", "done", "call_2")


def test_a_stream_of_a_custom_call_says_its_text(endpoint: Endpoint) -> None:
    with played(endpoint, lambda asked: Reply("", CALLS[1:2], finish="tool_calls")) as (session, _):
        client = openai.OpenAI(base_url=f"{endpoint.address}/e/{session.key}/v1", api_key=session.key)
        events = list(client.responses.create(model="any", input="hello", tools=OFFERED, stream=True))
    assert [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"] == [
        PATCH
    ]
    (done,) = [event.item for event in events if event.type == "response.output_item.done"]
    assert (done.type, done.input) == ("custom_tool_call", PATCH)


def test_two_tools_of_one_name_are_refused(endpoint: Endpoint) -> None:
    twice: Any = [*OFFERED, {"type": "namespace", "name": "more", "tools": [SPAWN]}]
    with played(endpoint, lambda asked: Reply("fine")) as (session, _):
        client = openai.OpenAI(base_url=f"{endpoint.address}/e/{session.key}/v1", api_key=session.key)
        with pytest.raises(openai.BadRequestError, match="two have the name spawn"):
            client.responses.create(model="any", input="hello", tools=twice)


def test_system_messages_before_all_others_are_one_and_later_ones_stay(endpoint: Endpoint) -> None:
    developer = [{"role": "developer", "content": text} for text in ("be short", "be right")]
    with played(endpoint, lambda asked: Reply("fine")) as (session, asked):
        said = [
            *developer,
            {"role": "user", "content": "hello"},
            {"role": "system", "content": "now be long"},
        ]
        url = f"{endpoint.address}/e/{session.key}/v1/responses"
        httpx.post(url, json={"input": said, "instructions": "be kind"}, timeout=30)
    assert [(each.role, each.content) for each in asked[0].request.messages] == [
        ("system", "be kind\n\nbe short\n\nbe right"), ("user", "hello"), ("system", "now be long")
    ]  # fmt: skip
