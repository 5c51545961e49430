"""What every format is read into: a trace, its steps, and where it stood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skillpress.core.errors import UserError

MOST_CHARACTERS = 20_000
"""Of a step's text that rules look at; what an agent wrote may be endless."""


class TracesError(UserError):
    """Logs, rules or options that do not fit each other."""


class UnreadableTraceError(ValueError):
    """Why one record is no trace; it is counted, named and passed over."""


class TraceStep(NamedTuple):
    """One thing that an agent did."""

    tool: str | None
    """The tool that it called; None where it acted in words."""
    content: Any
    """The call's arguments (a mapping, or its text), or the words."""
    answer: Any = ""
    """What came back; of any type that JSON has."""
    refused: bool = False
    """Whether the log says that the step failed or changed nothing."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of an agent."""

    name: str
    """What the log calls it; may be empty."""
    steps: tuple[TraceStep, ...]
    success: bool | None = None
    """None where nobody says."""
    task: str = ""
    """Traces of one task (or session) are not independent; empty for one that stands alone."""
    version: str = ""
    """Of the agent."""
    time: float | None = None
    """When it was, in any unit that orders the traces of a log; None where the log does not say."""
    left_out: int = field(default=0, compare=False)
    """Runs of other agents inside this one, which are not read."""


class Place(NamedTuple):
    """Where a trace stands."""

    file: int
    """Position in the list of files."""
    number: int
    """Line, or item of a list, from 1 on; an episode of a rollout file from 0 on."""
    position: int
    """Which of the file's values it is, from 0 on."""
    offset: int = -1
    """Byte at which its line begins; -1 where it cannot be sought."""


class Bad(NamedTuple):
    """A line that is no trace."""

    file: str
    number: int
    why: str


def json_value(text: str) -> Any:
    """The value of a JSON text. Half a character, which JSON can write and no file takes, becomes a question
    mark.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


def acted(action: str, answer: Any, refused: bool) -> TraceStep:
    """A step of our own environments: what is written as a call, ``{"tool": "edit", ...}``, is a call of that
    tool, any other action is words."""
    if action.lstrip()[:1] == "{":
        try:
            call = json_value(action)
        except (ValueError, RecursionError):
            call = None
        if isinstance(call, dict) and isinstance(call.get("tool"), str):
            arguments = {name: value for name, value in call.items() if name != "tool"}
            return TraceStep(call["tool"], arguments, answer, refused)
    return TraceStep(None, action, answer, refused)


def text_of(value: Any) -> str:
    """A content or an answer as text: as it stands, the text parts of a message, or JSON."""
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
    """The named arguments of a call; empty where it has none, or where they cannot be read."""
    content = step.content
    if isinstance(content, str) and step.tool is not None:
        try:
            content = json_value(content)
        except (ValueError, RecursionError):
            return {}
    return content if isinstance(content, Mapping) else {}


def action_of(step: TraceStep) -> str:
    """What was done, as text: the words, or the call's one argument, or all of them as JSON."""
    if step.tool is None:
        return text_of(step.content)[:MOST_CHARACTERS]
    arguments = arguments_of(step)
    if len(arguments) == 1:
        (only,) = arguments.values()
        return text_of(only)[:MOST_CHARACTERS]
    return text_of(step.content)[:MOST_CHARACTERS]
