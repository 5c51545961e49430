"""The result of reading any format: a trace, its steps, and its place in the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skillpress.core.errors import UserError

MOST_CHARACTERS = 20_000
"""The most characters of a step's text that rules look at. An agent's text may be endless."""


class TracesError(UserError):
    """Logs, rules or options that do not match each other."""


class UnreadableTraceError(ValueError):
    """Why a record is not a trace. The record is counted, named and skipped."""


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


@dataclass(frozen=True, slots=True)
class Call:
    """What a record that is one model call of a run says about its place in that run.

    Call B goes on where call A ended if A's history and then A's answer are the beginning of B's history.
    """

    session: str = ""
    """The run that the record names; empty if it names none."""
    history: tuple[int, ...] = ()
    """One hash for each message that the model was asked with, without the messages of the answer. A hash
    is of role, content and calls alone, has 64 bits, and is the same in every process."""
    parent: str = ""
    """The id of the call that this one continues; empty if the record names none."""
    own: str = ""
    """The call's own id."""
    answer: int | None = None
    """The hash of the answer, as a later history would have it; None without one message as the answer, or
    if the history holds the answer too."""
    earlier: int = 0
    """How many of the trace's steps are from the history. The rest are the answer's."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of an agent, or (with ``call``) one model call of a run and everything before it."""

    name: str
    """The log's name for the trace; may be empty."""
    steps: tuple[TraceStep, ...]
    success: bool | None = None
    """None if the log does not say."""
    task: str = ""
    """Traces of one task (or session) are not independent. Empty for a trace that stands alone."""
    version: str = ""
    """The agent's version."""
    time: float | None = None
    """The time of the trace, in any unit that orders the traces of a log; None if the log does not say."""
    left_out: Mapping[str, int] = field(default_factory=dict, compare=False)
    """What the record holds beside these steps, as a plural noun phrase ("runs of sub-agents",
    "demonstration messages", "steps of copied context"), and how many of each."""
    outcome: str = ""
    """The field in which the format itself keeps the outcome (``resolved``, ``reward``, ``scores.match``);
    empty if the record has none. ``success`` and ``score`` are then read from it."""
    score: float | None = None
    """The outcome as a number; None if it is not a number, or NaN. A reward that is neither 0 nor 1 leaves
    ``success`` unknown."""
    call: Call | None = None
    """None for a record that is a whole run."""


class Place(NamedTuple):
    """The place of a trace."""

    file: int
    """Position in the list of files."""
    number: int
    """Line, or item of a list, from 1 on; for a rollout file the episode, from 0 on."""
    position: int
    """Its number among the file's values, from 0 on."""
    offset: int = -1
    """The byte at which its line begins; -1 if the file cannot seek there."""
    member: str = ""
    """The member of an archive that holds it; ``position`` counts the member's values."""


class PassedOver(NamedTuple):
    """A file in a folder, or a member of an archive, that holds no trace."""

    file: str
    why: str


class Bad(NamedTuple):
    """A line that is not a trace."""

    file: str
    number: int
    why: str


def whole_text(content: bytes) -> str:
    """Bytes as text. Halves of surrogate pairs, which some writers encode like other characters, become
    question marks.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = content.decode("utf-8", "surrogatepass")
        return found.removeprefix("\ufeff").encode(errors="replace").decode()


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


def acted(action: str, answer: Any, refused: bool) -> TraceStep:
    """A step of our own environments. An action written as a call, ``{"tool": "edit", ...}``, is a call of
    that tool; any other action is words."""
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
        try:
            content = json_value(content)
        except (ValueError, RecursionError):
            return {}
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
