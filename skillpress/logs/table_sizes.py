"""The expanded size that a Parquet or Arrow file states, read only from its descriptions.

Parquet describes each column of each group of rows in its footer, in Thrift's compact protocol. Arrow
describes each batch in a flatbuffer in front of it, and a compressed buffer begins with its own size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, Any

from skillpress.logs.expansion import ExpansionError

VALUE_BYTES = 8
"""Minimum number of bytes per value: a number, or the place of a text."""
LARGEST_FOOTER = 16 << 20
"""The longest footer of a Parquet file that is read, in bytes."""
LARGEST_MESSAGE = 2 << 30
"""The largest batch of an Arrow stream that is read, in bytes."""
MARK = b"\xff\xff\xff\xff"
BATCH, DICTIONARY = 3, 2
"""The types of an Arrow message that holds rows, or a dictionary; others hold the schema."""


def parquet_bytes(file: IO[bytes]) -> int:
    """The number of bytes that a Parquet file states for its columns, at least ``VALUE_BYTES`` for each
    value.

    Raises:
        ExpansionError: the footer is too long to be read.
        struct.error, IndexError, ValueError: the footer is damaged.
    """
    size = file.seek(-8, os.SEEK_END) + 8
    length, mark = struct.unpack("<I4s", file.read(8))
    if mark != b"PAR1" or length > size:
        raise ValueError("no footer")
    if length > LARGEST_FOOTER:
        raise ExpansionError(
            f"its footer has {length:,} bytes, more than the {LARGEST_FOOTER:,} that are read"
        )
    file.seek(size - 8 - length)
    groups = _Compact(file.read(length)).struct()[4]
    columns = [column[3] for group in groups for column in group[1]]
    return sum(max(_count(column[6]), VALUE_BYTES * _count(column[5])) for column in columns)


def _count(number: int) -> int:
    """The number; a negative one would hide others in a sum."""
    if number < 0:
        raise ValueError(f"a count is negative ({number})")
    return number


class _Compact:
    """Reads Thrift's compact protocol: structs as mappings from a field's number to its value."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The struct that begins here."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > 16:
            raise ValueError("nested too deeply")
        if kind in (1, 2, 3):  # a truth value in a list, or a byte
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._take(8)
        if kind == 8:
            return self._take(self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            count = self._unsigned() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(min(count, len(self._data)))]
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"a field has the unknown type {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        found = 0
        for shift in range(0, 70, 7):  # 64 bits have ten bytes at most
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise ValueError("a number has more than 64 bits")

    def _integer(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)


def arrow_bytes(file: IO[bytes]) -> int:
    """The number of bytes that the batches of an Arrow file or stream state.

    Raises:
        EOFError: it breaks off, or a message is too large.
        struct.error, IndexError: a description is damaged.
    """
    whole = messages if file.read(4) == MARK else _in_file
    file.seek(0)
    return sum(_expanded(file, described, start) for described, start, _ in whole(file))


def messages(file: IO[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """(description, place of the body, bytes of the body) of each message of a stream; afterwards the file
    may be anywhere.

    A message consists of a mark, the length of its description, the description (a table of a flatbuffer,
    which has the message's type and the length of its body), and the body.
    """
    while len(head := file.read(8)) == 8 and head.startswith(MARK):
        (length,) = struct.unpack("<i", head[4:])
        if length <= 0:
            return
        if length > LARGEST_FOOTER:
            raise EOFError(f"a message's description has {length} bytes, which is not allowed")
        described = file.read(length)
        size = field(described, 3, "<q")
        if not 0 <= size <= LARGEST_MESSAGE:
            raise EOFError(f"a message has {size} bytes, which is not allowed")
        start = file.tell()
        yield described, start, size
        file.seek(start + size)


def _in_file(file: IO[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Same as :func:`messages` for a file, whose footer has the places of its messages."""
    size = file.seek(-10, os.SEEK_END) + 10
    (length,) = struct.unpack("<i", file.read(4))
    if not 0 <= length <= min(size, LARGEST_FOOTER):
        raise ValueError(f"the footer has {length} bytes, which is not allowed")
    file.seek(size - 10 - length)
    footer = file.read(length)
    (table,) = struct.unpack_from("<I", footer)
    read = 0
    for number in (2, 3):  # dictionaries, batches of rows
        for offset, described, body in _vector(footer, table, number, "<qi4xq"):
            file.seek(_count(offset))
            read += _count(described)
            if read > LARGEST_FOOTER:
                raise ValueError("the descriptions have more than 16 MiB")
            content = file.read(described)
            yield content[8 if content.startswith(MARK) else 4 :], offset + described, body


def _expanded(file: IO[bytes], described: bytes, start: int) -> int:
    """Bytes of a message's rows or dictionary, at least ``VALUE_BYTES`` for each value."""
    kind, batch = field(described, 1, "<B"), _table(described, 2)
    if kind == DICTIONARY:
        batch = _inside(described, batch, 1)
    elif kind != BATCH:
        return 0
    values = sum(_count(each[0]) for each in _vector(described, batch, 1, "<qq"))
    compressed = _place(described, batch, 3) > 0
    total = 0
    for offset, length in _vector(described, batch, 2, "<qq"):
        if compressed and length >= 8:
            file.seek(start + offset)
            length = max(length, struct.unpack("<q", file.read(8))[0])
        total += _count(length)
    return max(total, VALUE_BYTES * values)


def field(described: bytes, number: int, form: str) -> int:
    """A number in the first table of a flatbuffer; 0 if the table omits it."""
    (table,) = struct.unpack_from("<I", described)
    place = _place(described, table, number)
    return int(struct.unpack_from(form, described, place)[0]) if place else 0


def _place(described: bytes, table: int, number: int) -> int:
    """The place of a table's field; 0 if the table omits it."""
    (back,) = struct.unpack_from("<i", described, table)
    (length,) = struct.unpack_from("<H", described, table - back)
    if (entry := 4 + 2 * number) >= length:
        return 0
    (offset,) = struct.unpack_from("<H", described, table - back + entry)
    return table + offset if offset else 0


def _table(described: bytes, number: int) -> int:
    """The place of a table that is a field of the first one."""
    (table,) = struct.unpack_from("<I", described)
    return _inside(described, table, number)


def _inside(described: bytes, table: int, number: int) -> int:
    place = _place(described, table, number)
    if not place:
        raise struct.error("a table is missing")
    return place + int(struct.unpack_from("<I", described, place)[0])


def _vector(described: bytes, table: int, number: int, form: str) -> list[tuple[int, ...]]:
    """A vector of structs that is a table's field; empty if the table omits it."""
    place = _place(described, table, number)
    if not place:
        return []
    place += struct.unpack_from("<I", described, place)[0]
    (count,) = struct.unpack_from("<I", described, place)
    return list(struct.iter_unpack(form, described[place + 4 : place + 4 + struct.calcsize(form) * count]))
