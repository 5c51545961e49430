"""LangChain's messages: ``type: ai``, ``human`` or ``tool``, plain, with ``data``, or as ``lc``
constructors.

They are alone in a list, under ``messages`` (LangGraph's state, also inside ``values`` or ``output``), or
under ``chat_history``. The older executor's ``intermediate_steps`` hold pairs of an action and its
observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from skillpress.core.chat_messages import ROLES
from skillpress.environments.calls.steps import TraceStep
from skillpress.logs.chat import trace_of
from skillpress.logs.conversation import LoggedConversation, read_conversation
from skillpress.logs.fields import dig
from skillpress.logs.messages import unwrapped
from skillpress.logs.trace import Trace, UnreadableTraceError

_PLACES = (
    "messages",
    "values.messages",
    "output.messages",
    "outputs.messages",
    "chat_history",
    "kwargs.messages",
)


def recognises(record: Any) -> bool:
    """Whether the record has messages of LangChain's classes, or steps of its executor."""
    return _messages(record) is not None or _pairs(record) is not None


def read(record: Any) -> Trace:
    """The trace of a run.

    Raises:
        UnreadableTraceError: a message cannot be read.
    """
    line = record if isinstance(record, dict) else {}
    messages, pairs = _messages(record), _pairs(record)
    if pairs is not None and (messages is None or "intermediate_steps" in line):
        trace = trace_of(line, LoggedConversation())
        return replace(trace, steps=tuple(_executed(pairs, line.get("output"))))
    return trace_of(line, read_conversation(messages or []))


def _messages(record: Any) -> list[Any] | None:
    if isinstance(record, list):
        return record if record and _is_message(record[0]) else None
    if not isinstance(record, dict):
        return None
    held = (dig(record, place) for place in _PLACES)
    return next((each for each in held if isinstance(each, list) and each and _is_message(each[0])), None)


def _is_message(value: Any) -> bool:
    """Whether a value is a message in a form that only LangChain writes."""
    if not isinstance(value, dict) or "role" in value:
        return False
    message = unwrapped(value)
    kind = message.get("type")
    return isinstance(kind, str) and kind.lower() in ROLES and "content" in message


def _pairs(record: Any) -> list[Any] | None:
    steps = record.get("intermediate_steps") if isinstance(record, dict) else None
    if not isinstance(steps, list) or not steps or not isinstance(steps[0], list) or len(steps[0]) != 2:
        return None
    return steps if _action(steps[0][0]) is not None else None


def _action(value: Any) -> Mapping[str, Any] | None:
    """An executor's action, out of its constructor."""
    if (
        isinstance(value, dict)
        and value.get("type") == "constructor"
        and isinstance(value.get("kwargs"), dict)
    ):
        value = value["kwargs"]
    return value if isinstance(value, dict) and "tool" in value else None


def _executed(pairs: list[Any], last: Any) -> Iterator[TraceStep]:
    for pair in pairs:
        action = _action(pair[0]) if isinstance(pair, list) and len(pair) == 2 else None
        if action is None:
            raise UnreadableTraceError("an intermediate step has no action")
        tool = action["tool"]
        yield TraceStep(tool if isinstance(tool, str) else "", action.get("tool_input"), pair[1])
    if isinstance(last, str) and last:
        yield TraceStep(None, last)
