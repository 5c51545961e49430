"""Messages between the host and a sandbox: four bytes of length, then a JSON object.

A message from inside may come from an agent that tries to harm its reader. A length is checked before memory
is reserved for it, and nothing is unpickled. Broken or endlessly nested JSON is an ordinary error, and a lone
surrogate in a text becomes a question mark. Each field is checked here, once. A message that breaks a rule is
a ``FrameError``, which ends the sandbox that sent it and affects nothing else.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct(">I")
MAX_BYTES = 1 << 20
"""Maximum size of one message from inside."""


class FrameError(Exception):
    """The bytes from inside are not a valid message; the text says why."""


def encode(message: Message) -> bytes:
    """The message as bytes."""
    body = json.dumps(message).encode()
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> Message:
    """Decode the body of a frame; ``FrameError`` if it is not a JSON object, or nested too deeply."""
    try:
        message = json.loads(body)
        if b"\\ud" in body or b"\\uD" in body:  # lone surrogates, which no file and no tokenizer accepts
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except RecursionError:
        raise FrameError("a message is nested too deeply") from None
    except ValueError:  # invalid JSON or UTF-8, or a number with too many digits
        raise FrameError("a message is not JSON") from None
    if not isinstance(message, dict):
        raise FrameError("a message is not JSON object")
    return message


class FrameReader:
    """Splits the bytes from a sandbox into messages."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that these bytes complete; ``FrameError`` if one is too long or invalid."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer)
            if length > self._max_bytes:
                raise FrameError(
                    f"a message of {length} bytes was announced, more than the {self._max_bytes} that are "
                    f"allowed"
                )
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield decode(body)


@dataclass(frozen=True)
class Report:
    """The interpreter's first message, sent before it runs anything: the isolation that it sees."""

    isolation: dict[str, object]


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
    """Parse a message; ``FrameError`` if it is none of the four kinds, or a field is invalid."""
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
        case {"isolation": dict(isolation)}:
            return Report(isolation)
        case {"isolation": _}:
            raise FrameError("the interpreter did not say what it sees")
    raise FrameError("a message is neither an answer nor a call of a tool")


def _text(message: Message, field: str) -> str | None:
    """A field that is a text or null."""
    value = message.get(field)
    if value is None or isinstance(value, str):
        return value
    raise FrameError(f"an answer's {field} is not text")
