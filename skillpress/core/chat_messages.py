"""The messages of chat models in every dialect: who speaks, what their parts hold, and their tool calls.

Three readers share these: the logs of any agent, the requests of programs, and the answers of servers. They
differ in what they do with a message that they do not understand: a log skips it, a request is refused, an
answer is read as far as possible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

Role = Literal["system", "user", "assistant", "tool"]

ROLES: Mapping[str, Role] = {
    **dict.fromkeys(
        ("assistant", "ai", "gpt", "model", "bot", "agent", "chatgpt", "aimessagechunk"), "assistant"
    ),
    **dict.fromkeys(
        (
            "tool", "function", "ipython", "observation", "tool_response", "tool_result", "function_response",
            "environment", "tool-result", "multi_tool",
        ),
        "tool",
    ),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("system", "developer", "instructions", "exit"), "system"),
}  # fmt: skip
"""The names of speakers, as ``role``, ``from`` or ``type`` write them, in lower case."""
WORDS = ("text", "input_text", "output_text")
"""The types of parts whose ``text`` are words. A part of type ``refusal`` has them under ``refusal``."""
THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Fields of a message that may hold its reasoning; the first one that is not empty counts."""
LEVELS = 64
"""The deepest nesting of a call's arguments. Those of real tools have a handful of levels."""


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any]
    identity: str = ""
    """The call's id; empty if it has none."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    """The calls of an assistant's message."""
    answers: str = ""
    """The id of the call that a tool's message answers; empty in other messages."""
    thought: str = ""
    """The reasoning that a client sends back with an assistant's message; empty if it sends none."""

    def plain(self) -> dict[str, Any]:
        """The message as a chat template reads it, with arguments as mappings."""
        found: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            found["tool_calls"] = listed_calls(self.calls, dict)
        if self.answers:
            found["tool_call_id"] = self.answers
        if self.thought:
            found["reasoning_content"] = self.thought
        return found


def holds_thought(kind: str) -> bool:
    """Whether a part of this type holds reasoning, such as ``thinking`` or ``reasoning.summary``."""
    return "thinking" in kind or "reasoning" in kind


def call_of(name: Any, arguments: Any, identity: Any) -> ToolCall:
    """A call whose arguments are a mapping or a JSON text. None, an empty text and ``null`` mean an empty
    mapping. Any other value, and one that cannot be sent on, is kept under ``raw``."""
    if isinstance(arguments, str):
        try:
            found = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            found = arguments
        arguments = found if can_be_sent(found) else arguments
    if not isinstance(arguments, Mapping):
        arguments = {} if arguments is None else {"raw": arguments}
    return ToolCall(str(name or ""), arguments, str(identity or ""))


def listed_calls(
    calls: Iterable[ToolCall], arguments: Callable[[Mapping[str, Any]], object]
) -> list[dict[str, Any]]:
    """``tool_calls`` of chat completions; ``arguments`` says whether they are mappings or texts."""
    return [
        {
            "type": "function",
            "id": call.identity,
            "function": {"name": call.name, "arguments": arguments(call.arguments)},
        }
        for call in calls
    ]


def tool_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in the form of chat completions, from any vendor's."""
    inner = told["function"] if isinstance(told.get("function"), Mapping) else told
    described = {"name": inner.get("name"), "description": inner.get("description") or ""}
    schema = inner.get("parameters") or inner.get("input_schema") or inner.get("inputSchema") or {}
    return {"type": "function", "function": {**described, "parameters": schema}}


def can_be_sent(value: Any) -> bool:
    """Whether every answer can carry this JSON value unchanged: numbers are finite, whole numbers have at
    most 64 bits, texts are whole characters, and the nesting is not too deep."""
    try:
        return _levels(value) <= LEVELS and bool(orjson.loads(orjson.dumps(value)) == value)
    except (TypeError, RecursionError):
        return False


def _levels(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_levels, inside), default=0)
