"""The JSON values of a file, one at a time, from lines or from one document, each also with gzip.

The content of a file decides how it is read. Lines are read as a stream, so that a log may be larger than the
memory. A document (one value over many lines, such as an exported list) is read whole. A list of records, and
an object with a list under ``traces``, hold one record per item.
"""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from skillpress.doors.traces.trace import UnreadableTraceError, json_value

LONGEST_LINE = 256 << 20
"""The longest line that is read, in bytes; longer ones are skipped."""
LARGEST_DOCUMENT = 2 << 30
"""The largest document that is read, in bytes, since it is held in memory whole."""


class Value(NamedTuple):
    """One value of a file, or the reason why it has none."""

    number: int
    """Its line, or its position in a list, from 1 on."""
    offset: int
    """The byte at which its line begins; -1 if the file cannot seek there."""
    value: Any
    """A JSON value, or an ``UnreadableTraceError``."""


def values(path: Path) -> Iterator[Value]:
    """All values of a file, in order."""
    with _opened(path) as file:
        sought = not isinstance(file, gzip.GzipFile)
        try:
            found = _document(file) if _is_document(file) else _lines(file, sought)
            yield from found
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Value(0, -1, UnreadableTraceError(f"the compressed file breaks off ({error})"))


def value_at(path: Path, offset: int) -> Any:
    """The value of the line that begins at a byte."""
    with path.open("rb") as file:
        file.seek(offset)
        return parsed(file.readline(LONGEST_LINE))


def parsed(line: bytes) -> Any:
    """A line's value, or an ``UnreadableTraceError`` that says why it has none."""
    try:
        return json_value(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return UnreadableTraceError(f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        return UnreadableTraceError(f"not JSON: {error}")
    except RecursionError:
        return UnreadableTraceError("nested too deeply")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if compressed else path.open("rb")


def _is_document(file: IO[bytes]) -> bool:
    """Whether a value spans several lines. Afterwards the file is at its beginning again.

    In that case neither of the first two non-empty lines is a value, or the first is a single bracket.
    """
    firsts: list[bytes] = []
    while len(firsts) < 2 and (line := file.readline(LONGEST_LINE)):
        if line.strip():
            firsts.append(line.removeprefix(BOM_UTF8))
    file.seek(0)
    if firsts and firsts[0].strip() in (b"[", b"{"):
        return True
    return bool(firsts) and firsts[0].lstrip()[:1] in (b"[", b"{") and not any(map(_is_value, firsts))


def _is_value(line: bytes) -> bool:
    return not isinstance(parsed(line), UnreadableTraceError)


def _lines(file: IO[bytes], sought: bool) -> Iterator[Value]:
    offset = number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        begun, offset = offset, offset + len(line)
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                offset += len(rest)
            offset += len(rest)
            yield Value(number, -1, UnreadableTraceError(f"longer than {LONGEST_LINE >> 20} MiB"))
        elif line.strip():
            value = parsed(line)
            held = items(value)
            if held is None:
                yield Value(number, begun if sought else -1, value)
            else:  # a whole document on one line
                yield from (Value(item, -1, each) for item, each in enumerate(held, 1))


def _document(file: IO[bytes]) -> Iterator[Value]:
    content = file.read(LARGEST_DOCUMENT + 1)
    if len(content) > LARGEST_DOCUMENT:
        why = f"a document of more than {LARGEST_DOCUMENT >> 30} GiB; write one record on each line"
        yield Value(1, -1, UnreadableTraceError(why))
        return
    value = parsed(content)
    held = items(value)
    yield from (Value(item, -1, each) for item, each in enumerate([value] if held is None else held, 1))


def items(value: Any) -> list[Any] | None:
    """The records that a value holds; None if it is a record itself."""
    if isinstance(value, Mapping) and isinstance(value.get("traces"), list):
        return list(value["traces"])
    if isinstance(value, list) and not (value and isinstance(value[0], Mapping) and "role" in value[0]):
        return value
    return None
