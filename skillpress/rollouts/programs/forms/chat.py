"""Chat completions: ``POST /v1/chat/completions``, streamed or not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.core.chat_messages import ROLES, Message, ToolCall, call_of, listed_calls
from skillpress.rollouts.programs.forms import Form
from skillpress.rollouts.programs.forms.reading import (
    event,
    listed,
    request_of,
    stops,
    text_of,
    vendor_error,
    whole,
)
from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError, Reply

SPEAKERS = ("developer", "system", "user", "assistant", "tool", "function")


def read(body: Mapping[str, Any]) -> ModelRequest:
    """The request of a body.

    Raises:
        RefusedRequestError: it cannot be read, or asks for something that this endpoint does not support.
    """
    messages = [_message(message, number) for number, message in enumerate(listed(body, "messages"))]
    tools = body.get("tools") or [
        {"type": "function", "function": each} for each in body.get("functions") or ()
    ]
    return request_of(
        body,
        messages,
        tools,
        whole(body, "max_completion_tokens", "max_tokens"),
        stops(body.get("stop"), "stop"),
    )


def _message(message: Any, number: int) -> Message:
    where = f"messages[{number}]"
    speaker = str(message.get("role")) if isinstance(message, Mapping) else ""
    if speaker not in SPEAKERS:
        raise RefusedRequestError(
            f"{where}: must be a message with one of the roles {', '.join(SPEAKERS)}",
            where,
            "invalid_value",
        )
    role = ROLES[speaker]
    called = [(each.get("function") or {}, each.get("id")) for each in message.get("tool_calls") or ()]
    calls = [call_of(of.get("name"), of.get("arguments"), identity) for of, identity in called]
    if not calls and (old := message.get("function_call")):
        calls = [call_of(old.get("name"), old.get("arguments"), "")]
    return Message(
        role,
        text_of(message.get("content"), f"{where}.content"),
        calls=tuple(calls),
        answers=str(message.get("tool_call_id") or message.get("name") or "") if role == "tool" else "",
        thought=str(message.get("reasoning_content") or message.get("reasoning") or ""),
    )


def write(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> dict[str, Any]:
    """The body of an answer, with one choice for each reply."""
    choices = [
        {"index": index, "message": _said(reply), "finish_reason": reply.finish, "logprobs": None}
        for index, reply in enumerate(replies)
    ]
    return _head(identity, model, "chat.completion") | {"choices": choices, "usage": usage(replies)}


def stream(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> Iterator[str]:
    """The answer as events, with one delta for each reply."""
    head = _head(identity, model, "chat.completion.chunk")
    for index, reply in enumerate(replies):
        delta = _said(reply)
        for place, call in enumerate(delta.get("tool_calls", ())):
            call["index"] = place
        for part, finish in ((delta, None), ({}, reply.finish)):
            choice = {"index": index, "delta": part, "finish_reason": finish}
            yield event(json.dumps(head | {"choices": [choice]}))
    yield event(json.dumps(head | {"choices": [], "usage": usage(replies)}))
    yield event("[DONE]")


def usage(replies: Sequence[Reply]) -> dict[str, int]:
    """Token counts: the prompt once, and all responses."""
    prompt, response = replies[0].prompt_tokens, sum(reply.response_tokens for reply in replies)
    return {"prompt_tokens": prompt, "completion_tokens": response, "total_tokens": prompt + response}


def weights(replies: Sequence[Reply]) -> list[list[dict[str, int]]]:
    """For each reply, which weights sampled which of its tokens."""
    return [
        [{"version": span.version, "start": span.start, "end": span.end} for span in reply.weights]
        for reply in replies
    ]


def calls(found: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """Calls in this form, with arguments as JSON text."""
    return listed_calls(found, lambda arguments: json.dumps(dict(arguments), ensure_ascii=False))


def _said(reply: Reply) -> dict[str, Any]:
    found: dict[str, Any] = {"role": "assistant", "content": reply.content or (None if reply.calls else "")}
    if reply.thought:
        found["reasoning_content"] = reply.thought
    if reply.calls:
        found["tool_calls"] = calls(reply.calls)
    return found


def _head(identity: str, model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{identity}", "object": kind, "created": int(time.time()), "model": model}


FORM = Form("/chat/completions", read, write=write, stream=stream, error=vendor_error)
