"""All messages that code inside can send, parsed in one place into types of this library.

A message may come from an agent that tries to harm its reader. Each field is checked here, once. A message
that breaks a rule is a ``FrameError``, which ends the sandbox that sent it and affects nothing else.
"""

from __future__ import annotations

import base64
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
    match message:
        case {"done": str(number)}:
            error = _text(message, "error")
            if error is not None and not error.strip():
                raise FrameError("an answer's error is blank")
            return Answer(number, _text(message, "result"), error)
        case {"done": _}:
            raise FrameError("an answer's number is not text")
        case {"call": str(name), "args": list(args), "kwargs": dict(kwargs)}:
            return Call(name, args, kwargs)
        case {"call": _}:
            raise FrameError("a call of a tool is not a name, a list and an object")
        case {"piece": str(text)}:
            try:
                return Piece(base64.b64decode(text, validate=True))
            except ValueError:
                raise FrameError("a piece of an archive is not base64") from None
        case {"piece": _}:
            raise FrameError("a piece of an archive is not text")
        case {"walls": dict(walls)}:
            return Report(walls)
        case {"walls": _}:
            raise FrameError("the interpreter did not say what it sees")
    raise FrameError("a message is neither an answer nor a call of a tool")


def _text(message: Message, field: str) -> str | None:
    """A field that is a text or null."""
    value = message.get(field)
    if value is None or isinstance(value, str):
        return value
    raise FrameError(f"an answer's {field} is not text")
