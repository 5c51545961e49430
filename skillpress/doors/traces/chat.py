"""Chat completions: an object with ``messages`` on every line, as their API takes and returns them.

Every tool call is a step, and its answer is the message with the same ``tool_call_id``. A message of the
assistant without a call is a step in words. A logged answer beside the messages (``choices``, or ``response``
with ``choices``) is the last message. The format does not record success: ``--success`` names a field of the
line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.doors.traces.fields import dig, seconds
from skillpress.doors.traces.trace import Trace, TraceStep, UnreadableTraceError

_NAMES, _TASKS, _TIMES = (
    ("id", "trace_id", "session_id"),
    ("task_id",),
    ("created", "created_at", "timestamp"),
)


def recognises(record: Any) -> bool:
    """Whether the record has a list of messages, or is one."""
    messages = record.get("messages") if isinstance(record, Mapping) else record
    if not isinstance(messages, list) or not messages:
        return False
    return isinstance(messages[0], Mapping) and "role" in messages[0]


def read(record: Any) -> Trace:
    """The trace of a conversation.

    Raises:
        UnreadableTraceError: a message has no role.
    """
    line = record if isinstance(record, Mapping) else {"messages": record}
    return Trace(
        _first(line, _NAMES),
        tuple(steps_of([*line["messages"], *_answered(line)])),
        task=_first(line, _TASKS),
        version=str(line.get("model") or "")[:200],
        time=next((time for key in _TIMES if (time := seconds(line.get(key))) is not None), None),
    )


def field(record: Any, path: str) -> Any:
    """The value at a path."""
    return dig(record, path)


def steps_of(messages: Sequence[Any]) -> Iterator[TraceStep]:
    """The steps of a conversation.

    Raises:
        UnreadableTraceError: a message has no role.
    """
    answers: dict[Any, Any] = {}
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role is None:
            raise UnreadableTraceError("a message without a role")
        if role in ("tool", "function"):
            answers.setdefault(message.get("tool_call_id", message.get("name")), message.get("content"))
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        calls = list(calls_of(message))
        for identity, name, arguments in calls:
            yield TraceStep(name, arguments, answers.get(identity, ""))
        if not calls:
            behind = messages[number + 1] if number + 1 < len(messages) else {}
            yield TraceStep(None, message.get("content"), behind.get("content", ""))


def calls_of(message: Mapping[str, Any]) -> Iterator[tuple[Any, str, Any]]:
    """(id, tool, arguments) of a message's calls."""
    calls = message.get("tool_calls") or ()
    for call in json.loads(calls) if isinstance(calls, str) else calls:  # exports of tables store it as text
        called = call.get("function") or call.get("custom") or call
        yield call.get("id"), _tool(called["name"]), called.get("arguments", called.get("input"))
    if not calls and (called := message.get("function_call")):  # some logs have one call in both forms
        yield called["name"], _tool(called["name"]), called.get("arguments")


def _tool(name: Any) -> str:
    """A tool's name; empty, which means no skill, if the log has none."""
    return "" if name is None else str(name)


def _answered(line: Mapping[str, Any]) -> list[Any]:
    response = line.get("response")
    choices = line.get("choices") or (response.get("choices") if isinstance(response, Mapping) else None)
    return [choices[0]["message"]] if choices else []


def _first(line: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((str(line[key])[:200] for key in keys if line.get(key) is not None), "")
