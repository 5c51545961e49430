"""How far a compressed file may expand. A few kilobytes can unpack to more than any memory holds.

Logs compress well, since each request repeats the conversation before it: 9 to 65 times in gzip, for
conversations of 40 to 400 calls. A file made to fill a memory has 500 times and more. So a file may expand to
``RATIO`` times its own bytes, and any file to ``FREE`` bytes. ``MOST`` bounds the sum. What a file says about
its sizes is looked at before anything is unpacked. It may lie, so bytes are also counted while they are read.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from contextlib import suppress
from typing import IO, cast

from skillpress.logs.trace import UnreadableTraceError

FREE = 16 << 20
"""Bytes to which every file may expand."""
RATIO = 200
"""A larger file may expand to this multiple of its own size."""
MOST = 64 << 30
"""The maximum number of bytes that a compressed file may expand to."""
NESTED = 2
"""Maximum depth of nested compression; a file can be constructed that contains itself."""


class ExpansionError(UnreadableTraceError):
    """A compressed file expands beyond the limit."""


def check_expansion(expanded: int, stored: int) -> None:
    """Raise ``ExpansionError`` if a file of ``stored`` bytes must not expand to ``expanded`` bytes."""
    if expanded > min(MOST, max(FREE, RATIO * stored)):
        raise ExpansionError(
            f"expands from {stored:,} bytes to {expanded:,} or more; the limits are {RATIO} times its size "
            f"and {MOST >> 30} GiB; if you trust it, unpack it and name the files"
        )


class Expander:
    """Opens the compressed parts of one stored file, and counts the bytes that they expand to."""

    def __init__(self, stored: int, nested: int = 0) -> None:
        """Begin to count.

        Args:
            stored: bytes of the file.
            nested: number of compressions that are open already.
        """
        self.stored, self._nested = stored, nested

    def gzip(self, file: IO[bytes]) -> tuple[IO[bytes], Expander]:
        """Return the content of a gzip file, and the opener of compressed files in it.

        Raises:
            ExpansionError: the file says that it expands too far, or is the third level of compression.
        """
        if self._nested == NESTED:
            raise ExpansionError(f"compressed {NESTED + 1} times or more; unpack it and name the files")
        inside = self.counted(cast(IO[bytes], gzip.GzipFile(fileobj=file)))
        if not self._nested and _claims_too_much(file, self.stored):
            with suppress(EOFError, zlib.error, gzip.BadGzipFile):  # the claim may be the end of a cut file
                while inside.read(1 << 20):
                    pass
        inside.seek(0)
        return inside, Expander(self.stored, self._nested + 1)

    def counted(self, file: IO[bytes]) -> IO[bytes]:
        """Return the same bytes; reading raises ``ExpansionError`` once there are too many."""
        return io.BufferedReader(cast(io.RawIOBase, _Counted(file, self.stored)), 1 << 16)


def _claims_too_much(file: IO[bytes], stored: int) -> bool:
    """Whether a gzip file says that it expands too far. It ends with its size, modulo 4 GiB."""
    file.seek(-min(4, stored), os.SEEK_END)
    size = file.read(4)
    file.seek(0)
    try:
        check_expansion(int.from_bytes(size, "little"), stored)
    except ExpansionError:
        return True
    return False


class _Counted(io.RawIOBase):
    def __init__(self, inside: IO[bytes], stored: int) -> None:
        self._inside, self._stored, self._read = inside, stored, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._read

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._read = self._inside.seek(offset, whence)
        return self._read

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        found = self._inside.read(len(buffer))
        self._read += len(found)
        check_expansion(self._read, self._stored)
        buffer[: len(found)] = found
        return len(found)
