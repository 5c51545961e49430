"""Messages between the host and a sandbox: four bytes of length, then a JSON object.

Messages from inside were written by an agent that may try to harm the reader. A length is checked before
memory is reserved for it, and nothing is unpickled. Broken or endlessly nested JSON is an ordinary error, and
a lone surrogate in a text becomes a question mark.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
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
    """Decode the body of a frame.

    Raises:
        FrameError: it is not a JSON object, or it is nested too deeply.
    """
    try:
        message = json.loads(body)
        if b"\\ud" in body or b"\\uD" in body:  # lone surrogates, which no file and no tokenizer accepts
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except RecursionError:
        raise FrameError("a message is nested too deeply") from None
    except ValueError:  # invalid JSON or UTF-8, or a number with too many digits
        raise FrameError("a message is no JSON") from None
    if not isinstance(message, dict):
        raise FrameError("a message is no JSON object")
    return message


class FrameReader:
    """Splits the bytes from a sandbox into messages."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that these bytes complete.

        Raises:
            FrameError: a message is too long or invalid.
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
