"""Responses: ``POST /v1/responses``, stateless, streamed or not."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillpress.core.chat_messages import ROLES, Message, ToolCall, call_of
from skillpress.rollouts.programs.forms import Form
from skillpress.rollouts.programs.forms.reading import (
    event,
    request_of,
    text_of,
    vendor_error,
    whole,
)
from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError, Reply

STATE = ("previous_response_id", "conversation", "background", "prompt")
"""Fields that ask the server to keep state, which this one does not do."""
ONE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The schema of a custom tool's arguments, as the model sees it."""
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Maps a finish to the reason why an answer is incomplete; with other finishes it is complete."""
SPEAKERS = ("developer", "system", "user", "assistant")
DROPPED = ("web_search", "web_search_preview", "tool_search", "image_generation")
"""Kinds of the vendor's tools that clients offer by default; the model does not see them."""


def read(body: Mapping[str, Any]) -> ModelRequest:
    """The request of a body.

    Raises:
        RefusedRequestError: it cannot be read, or asks for something that this endpoint does not support.
    """
    for field in STATE:
        if body.get(field):
            raise RefusedRequestError(
                f"{field}: this endpoint keeps no state; send the full input each time",
                field,
            )
    instructions = text_of(body.get("instructions"), "instructions")
    messages = [Message("system", instructions)] if instructions else []
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not items:
        raise RefusedRequestError(
            "input: a text or must be a list with at least one item", "input", "invalid_value"
        )
    for number, item in enumerate(items):
        _add(messages, item, f"input[{number}]")
    offered = list(_offered(body.get("tools") or ()))
    if (most := Counter(tool.name for tool in offered).most_common(1)) and most[0][1] > 1:
        raise RefusedRequestError(f"tools: two have the name {most[0][0]}", "tools", "invalid_value")
    tools = [tool.shown for tool in offered if tool.shown]
    request = request_of(body, messages, tools, whole(body, "max_output_tokens"), ())
    return dataclasses.replace(
        request,
        overruled=(*request.overruled, *(f"tools.{tool.name}" for tool in offered if not tool.shown)),
        call_kinds={tool.name: tool.written for tool in offered if tool.written},
    )


def _add(messages: list[Message], item: Any, where: str) -> None:
    """Add an item. The reasoning, text and calls of one response are items; together they are one message."""
    kind = item.get("type", "message") if isinstance(item, Mapping) else None
    if kind == "message" and item.get("role") in SPEAKERS:
        said = Message(ROLES[item["role"]], text_of(item.get("content"), f"{where}.content"))
        _join(messages, said) if said.role == "assistant" else messages.append(said)
    elif kind == "function_call":
        call = call_of(item.get("name"), item.get("arguments"), item.get("call_id") or item.get("id"))
        _join(messages, Message("assistant", calls=(call,)))
    elif kind == "custom_tool_call":
        call = call_of(item.get("name"), {"input": item.get("input")}, item.get("call_id") or item.get("id"))
        _join(messages, Message("assistant", calls=(call,)))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = text_of(item.get("output"), f"{where}.output")
        messages.append(Message("tool", output, answers=str(item.get("call_id") or "")))
    elif kind == "reasoning":
        parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
        thought = "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
        _join(messages, Message("assistant", thought=thought))
    else:
        raise RefusedRequestError(f"{where}: items of type {kind!r} are not supported here", where)


def _join(messages: list[Message], more: Message) -> None:
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or (last.calls and not more.calls):
        messages.append(more)
        return
    messages[-1] = Message(
        "assistant",
        last.content + more.content,
        calls=last.calls + more.calls,
        thought=last.thought + more.thought,
    )


@dataclass(frozen=True)
class _Offered:
    """A tool of a request."""

    name: str
    shown: dict[str, Any] | None
    """The tool as the model sees it; None for one that is dropped."""
    written: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Fields of its calls in an answer that calls of plain functions do not have."""


def _offered(tools: Sequence[Any]) -> Iterator[_Offered]:
    """The tools. A namespace becomes its single tools, and a custom tool becomes a function of one text."""
    for number, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, Mapping) else tool
        if kind in DROPPED:
            yield _Offered(str(kind), None)
        elif kind == "namespace":
            of = {"namespace": str(tool.get("name"))}
            yield from (_Offered(each.name, each.shown, of) for each in _offered(tool.get("tools") or ()))
        elif kind == "custom":
            shown = {"description": _of_custom(tool), "parameters": ONE_TEXT}
            yield _Offered(str(tool.get("name")), _function(tool | shown), {"type": "custom"})
        elif kind == "function":
            yield _Offered(str(tool.get("name")), _function(tool))
        else:
            raise RefusedRequestError(
                f"tools[{number}]: {kind!r} is hosted by the vendor; only functions are supported", "tools"
            )


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    described = {
        name: tool[name] for name in ("name", "description", "parameters") if tool.get(name) is not None
    }
    return {"type": "function", "function": described}


def _of_custom(tool: Mapping[str, Any]) -> str:
    """A custom tool's description, with the grammar of its text if it has one."""
    told, form = str(tool.get("description") or ""), tool.get("format")
    if not isinstance(form, Mapping) or not form.get("definition"):
        return told
    return f"{told}\n\nGrammar of the input ({form.get('syntax')}):\n{form['definition']}"


def write(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> dict[str, Any]:
    """The body of an answer; this form has one reply."""
    reply = replies[0]
    cut = INCOMPLETE.get(reply.finish)
    return _head(identity, model) | {
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": cut} if cut else None,
        "output": _items(identity, wanted, reply),
        "usage": {
            "input_tokens": reply.prompt_tokens,
            "output_tokens": reply.response_tokens,
            "total_tokens": reply.prompt_tokens + reply.response_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def stream(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> Iterator[str]:
    """The answer as events, with one delta for each item."""
    whole_answer, number = write(identity, model, wanted, replies), 0

    def told(kind: str, **content: Any) -> str:
        nonlocal number
        number += 1
        said = {"type": kind, "sequence_number": number - 1, **content}
        return event(json.dumps(said, ensure_ascii=False), kind)

    begun = whole_answer | {"status": "in_progress", "output": [], "usage": None}
    yield told("response.created", response=begun)
    for place, item in enumerate(whole_answer["output"]):
        at: dict[str, Any] = {"output_index": place, "item_id": item["id"]}
        yield told("response.output_item.added", output_index=place, item=item | _opened(item))
        if item["type"] == "message":
            (part,) = item["content"]
            at["content_index"] = 0
            yield told("response.content_part.added", **at, part=part | {"text": ""})
            yield told("response.output_text.delta", **at, delta=part["text"], logprobs=[])
            yield told("response.output_text.done", **at, text=part["text"], logprobs=[])
            yield told("response.content_part.done", **at, part=part)
        elif item["type"] == "custom_tool_call":
            yield told("response.custom_tool_call_input.delta", **at, delta=item["input"])
            yield told("response.custom_tool_call_input.done", **at, input=item["input"])
        elif item["type"] == "function_call":
            yield told("response.function_call_arguments.delta", **at, delta=item["arguments"])
            yield told(
                "response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"]
            )
        yield told("response.output_item.done", output_index=place, item=item)
    ended = "response.incomplete" if whole_answer["incomplete_details"] else "response.completed"
    yield told(ended, response=whole_answer)


def _opened(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item's fields before its content arrives."""
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    return {"status": "in_progress", **empty.get(item["type"], {})}


def _head(identity: str, model: str) -> dict[str, Any]:
    return {
        "id": f"resp_{identity}", "object": "response", "created_at": int(time.time()), "model": model,
        "error": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": None,
        "top_p": None, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def _items(identity: str, wanted: ModelRequest, reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if reply.thought:
        content = [{"type": "reasoning_text", "text": reply.thought}]
        found.append({"type": "reasoning", "id": f"rs_{identity}", "summary": [], "content": content})
    if reply.content or not reply.calls:
        part = {"type": "output_text", "text": reply.content, "annotations": []}
        found.append(
            {
                "type": "message",
                "id": f"msg_{identity}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    found += [_call(call, wanted.call_kinds.get(call.name, {})) for call in reply.calls]
    return found


def _call(call: ToolCall, kind: Mapping[str, str]) -> dict[str, Any]:
    common = {"call_id": call.identity, "name": call.name, "status": "completed"}
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    if kind.get("type") == "custom":
        text = call.arguments.get("input")
        written = text if isinstance(text, str) else arguments
        return {"type": "custom_tool_call", "id": f"ctc_{call.identity}", **common, "input": written}
    found = {"type": "function_call", "id": f"fc_{call.identity}", **common, "arguments": arguments}
    return found | ({"namespace": kind["namespace"]} if "namespace" in kind else {})


FORM = Form("/responses", read, write=write, stream=stream, error=vendor_error)
