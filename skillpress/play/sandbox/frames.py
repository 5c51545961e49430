"""Messages between the host and a sandbox: four bytes of length, then a JSON object.

What comes from inside was written by an agent that may want to harm the reader. A length is judged before
anything is stored for it, nothing is unpickled, JSON that is broken or nested without end is an error like
any other, and half a character in a text becomes a question mark.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct(">I")
MAX_BYTES = 1 << 20
"""Of one message from inside."""


class FrameError(Exception):
    """What came from inside is no message; the text says why."""


def encode(message: Message) -> bytes:
    """The message as it travels."""
    body = json.dumps(message).encode()
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> Message:
    """The message of a frame's body.

    Raises:
        FrameError: it is no JSON object, or nested too deeply.
    """
    try:
        message = json.loads(body)
        if (
            b"\\ud" in body or b"\\uD" in body
        ):  # halves of surrogate pairs, which no file and no tokenizer takes
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except RecursionError:
        raise FrameError("a message is nested too deeply") from None
    except ValueError:  # no JSON, no UTF-8, or a number of too many digits
        raise FrameError("a message is no JSON") from None
    if not isinstance(message, dict):
        raise FrameError("a message is no JSON object")
    return message


class FrameReader:
    """Cuts the bytes from a sandbox into messages."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that these bytes complete.

        Raises:
            FrameError: a message is too long, or none.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer)
            if length > self._max_bytes:
                raise FrameError(
                    f"a message of {length} bytes was announced; at most {self._max_bytes} may be"
                )
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield decode(body)
