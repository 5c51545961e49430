"""Messages: ``POST /v1/messages``, streamed or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.core.chat_messages import Message, call_of, tool_of
from skillpress.rollouts.programs.forms import Form
from skillpress.rollouts.programs.forms.reading import (
    event,
    listed,
    request_of,
    stops,
    text_of,
    whole,
)
from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError, Reply

FINISHES = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def read(body: Mapping[str, Any]) -> ModelRequest:
    """The request of a body.

    Raises:
        RefusedRequestError: it cannot be read, or asks for something that this endpoint does not support.
    """
    system = text_of(body.get("system"), "system")
    messages = [Message("system", system)] if system else []
    for number, message in enumerate(listed(body, "messages")):
        messages += _messages(message, f"messages[{number}]")
    tools = [tool_of(tool) for tool in body.get("tools") or ()]
    return request_of(
        body, messages, tools, whole(body, "max_tokens"), stops(body.get("stop_sequences"), "stop_sequences")
    )


def _messages(message: Any, where: str) -> list[Message]:
    """The messages of one message with blocks: an assistant's calls are part of it, and results become tool
    messages.
    """
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in ("user", "assistant", "system"):
        raise RefusedRequestError(
            f"{where}: must be a message of role user or assistant", where, "invalid_value"
        )
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    of = {"tool_use": [], "tool_result": [], "thinking": [], "text": []}  # type: dict[str, list[Any]]
    for block in blocks:
        kind = block.get("type") if isinstance(block, Mapping) else "text"
        if kind == "redacted_thinking":
            continue
        of[kind if kind in of else "text"].append(block)  # another type is refused where its text is read
    found = [
        Message(
            "tool",
            text_of(block.get("content"), f"{where}.content"),
            answers=str(block.get("tool_use_id") or ""),
        )
        for block in of["tool_result"]
    ]
    calls = tuple(call_of(block.get("name"), block.get("input"), block.get("id")) for block in of["tool_use"])
    text = text_of(of["text"], f"{where}.content")
    thought = "".join(str(block.get("thinking", "")) for block in of["thinking"])
    if text or calls or thought or not found:
        found.append(Message(role, text, calls=calls, thought=thought))
    return found


def write(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> dict[str, Any]:
    """The body of an answer; this form has one reply."""
    reply = replies[0]
    return _head(identity, model) | {
        "content": _blocks(reply),
        "stop_reason": FINISHES[reply.finish],
        "usage": {"input_tokens": reply.prompt_tokens, "output_tokens": reply.response_tokens},
    }


def stream(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> Iterator[str]:
    """The answer as events, with one delta for each block."""
    reply = replies[0]
    begun = _head(identity, model) | {
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": reply.prompt_tokens, "output_tokens": 0},
    }
    yield _event("message_start", message=begun)
    for index, block in enumerate(_blocks(reply)):
        yield _event("content_block_start", index=index, content_block=_empty(block))
        yield _event("content_block_delta", index=index, delta=_delta(block))
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": FINISHES[reply.finish], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": reply.response_tokens})
    yield _event("message_stop")


def error(refused: RefusedRequestError) -> dict[str, Any]:
    """The body of a refusal."""
    kind = {401: "authentication_error", 503: "overloaded_error"}.get(refused.status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": refused.message}}


def _head(identity: str, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{identity}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
    }


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if reply.thought:
        found.append({"type": "thinking", "thinking": reply.thought, "signature": ""})
    if reply.content or not reply.calls:
        found.append({"type": "text", "text": reply.content})
    found += [
        {"type": "tool_use", "id": call.identity, "name": call.name, "input": dict(call.arguments)}
        for call in reply.calls
    ]
    return found


def _empty(block: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: type(value)() if name in ("text", "thinking", "input") else value
        for name, value in block.items()
    }


def _delta(block: Mapping[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return {"type": "text_delta", "text": block["text"]}
        case "thinking":
            return {"type": "thinking_delta", "thinking": block["thinking"]}
        case _:
            return {
                "type": "input_json_delta",
                "partial_json": json.dumps(block["input"], ensure_ascii=False),
            }


def _event(name: str, **content: Any) -> str:
    return event(json.dumps({"type": name, **content}, ensure_ascii=False), name)


FORM = Form("/messages", read, write=write, stream=stream, error=error, count_path="/messages/count_tokens")
