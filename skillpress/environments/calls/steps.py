"""One action of an agent, as a log or a program's response says it: a call of a tool, or words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_CHARACTERS = 20_000
"""The most characters of a step's text that rules look at. An agent's text may be endless."""


class TraceStep(NamedTuple):
    """One action of an agent."""

    tool: str | None
    """The called tool; None for an action in words. Empty if the log names none: a step without a skill."""
    content: Any
    """The call's arguments (a mapping, or its text), or the words."""
    answer: Any = ""
    """The answer to the action; of any JSON type."""
    refused: bool = False
    """Whether the log says that the step failed or changed nothing."""


def text_of(value: Any) -> str:
    """A content or an answer as text: a text itself, the text parts of a message, or JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        texts = [part["text"] for part in value if isinstance(part.get("text"), str)]
        if texts:
            return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False)


def arguments_of(step: TraceStep) -> Mapping[str, Any]:
    """The named arguments of a call; empty if it has none, or if they cannot be read."""
    content = step.content
    if isinstance(content, str) and step.tool is not None:
        content = json_or(content)
    return content if isinstance(content, Mapping) else {}


def action_of(step: TraceStep) -> str:
    """The action as text: the words, or the call's only argument, or all of them as JSON."""
    if step.tool is None:
        return text_of(step.content)[:MOST_CHARACTERS]
    arguments = arguments_of(step)
    if len(arguments) == 1:
        (only,) = arguments.values()
        return text_of(only)[:MOST_CHARACTERS]
    return text_of(step.content)[:MOST_CHARACTERS]


def acted(action: str, answer: Any, refused: bool) -> list[TraceStep]:
    """The steps that one response of our own episodes says, in order.

    An action written as a call, ``{"tool": "edit", ...}``, is a call of that tool. A program's response,
    ``{"content": ..., "calls": [...]}`` (``Reply.as_action``), is a step for each of its calls, the last of
    which has the answer; without calls it is its content in words. Any other action is words.
    """
    said = unfolded(action)
    found: Mapping[str, Any] = said if isinstance(said, dict) else {}
    if isinstance(found.get("tool"), str):
        arguments = {name: value for name, value in found.items() if name != "tool"}
        return [TraceStep(found["tool"], arguments, answer, refused)]
    if not (found.keys() <= _RESPONSE and isinstance(found.get("content"), str)):
        return [TraceStep(None, action, answer, refused)]
    calls = found.get("calls") or ()
    steps = [TraceStep(str(call["tool"]), call["arguments"], "", refused) for call in calls]
    steps = steps or [TraceStep(None, found["content"], "", refused)]
    return [*steps[:-1], steps[-1]._replace(answer=answer)]


_RESPONSE = frozenset(["content", "calls"])


def unfolded(value: Any) -> Any:
    """Parse a text that is a JSON object or list; return anything else unchanged."""
    is_text = isinstance(value, str) and value.lstrip()[:1] in ("{", "[")
    return json_or(value, value) if is_text else value


def json_or(text: str, otherwise: Any = None) -> Any:
    """The value of a JSON text (:func:`json_value`); ``otherwise`` for any other text."""
    try:
        return json_value(text)
    except (ValueError, RecursionError):
        return otherwise


def json_value(text: str) -> Any:
    """The value of a JSON text. JSON can contain half a surrogate pair, which files cannot; it becomes a
    question mark. An integer of more digits than Python reads becomes an infinite number.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: the value is nested too deeply.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        value = json.loads(text, parse_int=_number)
    if "\\ud" in text or "\\uD" in text:
        value = _clean(value)
    return value


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < 1000 else float(digits)


def _clean(value: Any) -> Any:
    """The value without halves of surrogate pairs, in keys too."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return value
