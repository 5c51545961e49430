"""All messages that code inside can send, parsed in one place into types of this library.

A message may come from an agent that tries to harm its reader. Each field is checked here, once. A message
that breaks a rule is a ``FrameError``, which ends the sandbox that sent it and affects nothing else.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from skillpress.play.sandbox.frames import FrameError, Message


@dataclass(frozen=True)
class Report:
    """The interpreter's first message, sent before it runs anything: the walls that it sees."""

    walls: dict[str, object]


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    number: str
    """The request's random number, which only a process that has read the request knows."""
    result: str | None
    """The value of the last expression as text; None if there is none."""
    error: str | None
    """The error, never blank; None if there was none."""


@dataclass(frozen=True)
class Call:
    """A call of a tool of the host, whose annotations are used to check the arguments (any JSON)."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """A piece of an archive."""

    data: bytes


Said = Report | Answer | Call | Piece
"""Any message from inside."""


def understood(message: Message) -> Said:
    """Parse a message.

    Raises:
        FrameError: it is none of the four kinds, or one of its fields is invalid.
    """
    if "done" in message:
        return _answer(message)
    if "call" in message:
        return _call(message)
    if "piece" in message:
        return _piece(message)
    if "walls" in message:
        return _report(message)
    raise FrameError("a message is neither an answer nor a call of a tool")


def _answer(message: Message) -> Answer:
    number = message["done"]
    if not isinstance(number, str):
        raise FrameError("an answer's number is not text")
    error = _text(message, "error")
    if error is not None and not error.strip():
        raise FrameError("an answer's error is blank")
    return Answer(number, _text(message, "result"), error)


def _text(message: Message, field: str) -> str | None:
    """A field that is a text or null."""
    value = message.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise FrameError(f"an answer's {field} is not text")
    return value


def _call(message: Message) -> Call:
    name, args, kwargs = message["call"], message.get("args"), message.get("kwargs")
    if not (isinstance(name, str) and isinstance(args, list) and isinstance(kwargs, dict)):
        raise FrameError("a call of a tool is not a name, a list and an object")
    return Call(name, args, kwargs)


def _piece(message: Message) -> Piece:
    text = message["piece"]
    if not isinstance(text, str):
        raise FrameError("a piece of an archive is not text")
    try:
        return Piece(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise FrameError("a piece of an archive is not base64") from None


def _report(message: Message) -> Report:
    walls = message["walls"]
    if not isinstance(walls, dict):
        raise FrameError("the interpreter did not say what it sees")
    return Report(walls)
