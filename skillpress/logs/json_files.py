"""The JSON values of a text, one at a time: from lines, or from documents of many lines each.

The content decides how a text is read. Lines are read as a stream, so that a log may be larger than the
memory. Documents (indented values, one or several after one another) are read at once. A part that breaks off
at the beginning or end of a text is reported as bad, and the rest is read.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from skillpress.environments.calls.steps import json_value
from skillpress.logs.trace import UnreadableTraceError, whole_text

LONGEST_LINE = 256 << 20
"""The longest line that is read, in bytes; longer ones are skipped."""
LARGEST_DOCUMENT = 2 << 30
"""The largest document that is read, in bytes, because the entire document is held in memory."""
MOST_STRANGE = 10_000
"""Lines in a row that are neither values nor indented, after which a text is not read as documents."""
TOO_DEEP = "nested too deeply"
BLANK = b" \t\r\n\0"
"""Bytes around a line that mean nothing. A log that was cut while it was written may hold stretches of
zeros."""


class Value(NamedTuple):
    """One value of a file, or the reason why it has none."""

    number: int
    """Its line or row, or its position in a list, from 1 on."""
    offset: int
    """The byte at which its line begins; -1 if the file cannot seek there."""
    value: Any
    """A JSON value, or an ``UnreadableTraceError``."""
    member: str = ""
    """The member of an archive that holds it."""
    row: int = -1
    """Its row in a table, from 0 on; -1 outside of tables."""


def text_values(file: IO[bytes], sought: bool) -> Iterator[Value]:
    """All values of a text, in order.

    Args:
        sought: whether an offset suffices to find a line again.
    """
    found = _documents(file) if _holds_documents(file) else _lines(file, sought)
    yield from found


def value_at(path: Path, offset: int) -> Any:
    """The value of the line that begins at a byte."""
    with path.open("rb") as file:
        file.seek(offset)
        return parsed(_stripped(file.readline(LONGEST_LINE)))


def parsed(line: bytes) -> Any:
    """A line's value, or an ``UnreadableTraceError`` that says why there is none."""
    try:
        return json_value(whole_text(line))
    except UnicodeDecodeError as error:
        return UnreadableTraceError(f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        return UnreadableTraceError(f"not JSON: {error}")
    except RecursionError:
        return UnreadableTraceError(TOO_DEEP)


def _stripped(line: bytes) -> bytes:
    """A line without the characters around its value. A list may have one item on each line, followed by a
    comma.
    """
    return line.removeprefix(BOM_UTF8).strip(BLANK).removesuffix(b",")


def _holds_documents(file: IO[bytes]) -> bool:
    """Whether values span several lines. Afterwards the file is at its beginning again.

    They do if the first line is only a bracket (and not that of a list whose items have a line each), or if
    no line is a list or an object by itself. A log may begin with any number of bad lines, so all lines are
    tried. If many lines in a row are neither values nor indented, they are bad lines.
    """
    number = strange = 0
    opened = b""
    try:
        while line := file.readline(LONGEST_LINE):
            text = _stripped(line)
            begin = line.removeprefix(BOM_UTF8).lstrip(b"\0")[:1]
            number += bool(text)
            if number == 1 and text in (b"[", b"{"):
                opened = text
            elif text and opened:
                return not (opened == b"[" and _is_container(text))
            elif begin in (b"[", b"{") and _is_container(text):
                return False
            if text:
                strange = 0 if begin in (b" ", b"\t", b"}", b"]") else strange + 1
            if strange == MOST_STRANGE:
                return False
        return number > 0
    finally:
        file.seek(0)


def _is_container(text: bytes) -> bool:
    return len(text) > 2 and text[:1] in (b"[", b"{") and isinstance(parsed(text), list | dict)


def _lines(file: IO[bytes], sought: bool) -> Iterator[Value]:
    offset = number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        begun, offset = offset, offset + len(line)
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                offset += len(rest)
            offset += len(rest)
            yield Value(number, -1, value=UnreadableTraceError(f"longer than {LONGEST_LINE >> 20} MiB"))
        elif (text := _stripped(line)) and text not in (b"[", b"]"):
            yield Value(number, begun if sought else -1, value=parsed(text))


def _documents(file: IO[bytes]) -> Iterator[Value]:
    content = file.read(LARGEST_DOCUMENT + 1)
    if len(content) > LARGEST_DOCUMENT:
        why = f"a document of more than {LARGEST_DOCUMENT >> 30} GiB; write one record on each line"
        yield Value(1, -1, value=UnreadableTraceError(why))
        return
    value = parsed(content.strip(BLANK))
    if not isinstance(value, UnreadableTraceError):
        yield Value(1, -1, value=value)
        return
    try:
        text = whole_text(content)
    except UnicodeDecodeError:
        yield Value(1, -1, value=value)
        return
    yield from _Pieces(text)


_BETWEEN = re.compile(r"[\s,\]\0\ufeff]*")
_OPENING = re.compile(r"^([ \t]*)[{\[]", re.MULTILINE)


class _Pieces:
    """The values of a text that is not one JSON value: several documents, or a document that breaks off.

    A value that cannot be read ends where the next one of its level begins: the next bracket at the beginning
    of a line, or in a list the next one with the indentation of its items.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._openings = [(match.start(), len(match[1])) for match in _OPENING.finditer(text)]
        self._level = 0 if text.lstrip("\ufeff \r\n\t\0")[:1] in ("{", "[") else self._lowest()

    def __iter__(self) -> Iterator[Value]:
        decoder = json.JSONDecoder(parse_int=float)  # it finds the ends only, so no integer is too large
        text, at, line, counted = self._text, 0, 1, 0
        broken: Value | None = None
        """The error of the outermost list that breaks off, until something in it is read or has an error."""
        while (at := _end(_BETWEEN, text, at)) < len(text):
            line, counted = line + text.count("\n", counted, at), at
            why, value, end = "not JSON: a part of a value", None, at
            try:
                value, end = decoder.raw_decode(text, at)
            except ValueError as error:
                why = f"not JSON: {error}"
            except RecursionError:
                why = TOO_DEEP
            if isinstance(value, list | dict):
                broken = None
                yield Value(line, -1, value=parsed(text[at:end].encode("utf-8", "surrogatepass")))
                at = end
            elif text[at] == "[" and why != TOO_DEEP:  # the list breaks off; its first items may be whole
                broken = broken or Value(line, -1, value=UnreadableTraceError(why))
                at = _end(_BETWEEN, text, at + 1)
                self._level = at - text.rfind("\n", 0, at) - 1
            else:
                broken = None
                yield Value(line, -1, value=UnreadableTraceError(why))
                at = self._next(at)
        if broken:
            yield broken

    def _lowest(self) -> int:
        """The indentation of the items of a list whose head is missing; 0 if it was not a list."""
        listed = self._text.rstrip().endswith("]")
        return min((level for _, level in self._openings), default=0) if listed else 0

    def _next(self, at: int) -> int:
        after = bisect_right(self._openings, (at, len(self._text)))
        levels: Sequence[tuple[int, int]] = self._openings[after:]
        return next((place for place, level in levels if level <= self._level), len(self._text))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
