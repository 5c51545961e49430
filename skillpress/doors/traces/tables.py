"""Rows of tables that others wrote, as records: Parquet, and Arrow as files or streams (a Hugging Face
dataset on disk is a folder of these).

Rows are read in batches, so that a table may be larger than the memory. A field without a value is left out,
as JSON would do, because a table has a column for every field of any of its records.
"""

from __future__ import annotations

import datetime
import io
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import polars as pl

from skillpress.doors.traces.json_files import Value
from skillpress.doors.traces.trace import UnreadableTraceError

BATCH = 256
"""Rows that are in memory together, unless the file's own groups are larger."""
PARQUET, ARROW, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
"""How the files begin."""
LARGEST_MESSAGE = 2 << 30
"""The largest batch of an Arrow stream that is read, in bytes."""


def row_values(path: Path, begin: bytes, only: frozenset[int] | None = None) -> Iterator[Value]:
    """The rows of a table, numbered from 1 on.

    Args:
        begin: the first bytes of the file.
        only: the wanted rows, from 0 on; None reads all of them.
    """
    try:
        for first, rows in _batches(path, begin, only):
            for place, row in enumerate(rows.iter_rows(named=True), first):
                number = row.pop(_NUMBER) if only is not None else place
                yield Value(number + 1, -1, value=plain(row), row=number)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, struct.error, EOFError) as error:
        yield Value(0, -1, value=UnreadableTraceError(f"the table cannot be read ({str(error)[:120]})"))


def plain(value: Any) -> Any:
    """A cell as a JSON value. Times become ISO texts, and bytes are counted, not read."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {name: plain(held) for name, held in value.items() if held is not None}
    if isinstance(value, list):
        return [plain(held) for held in value]
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, pl.Series):
        return [plain(held) for held in value.to_list()]
    return str(value)


_NUMBER = "the row's number"


def _batches(path: Path, begin: bytes, only: frozenset[int] | None) -> Iterator[tuple[int, pl.DataFrame]]:
    """(number of its first row, rows)."""
    first = 0
    if begin.startswith(ARROW_STREAM):
        with path.open("rb") as file:
            for rows in _stream(file):
                numbered = rows.with_row_index(_NUMBER, first)
                yield first, rows if only is None else numbered.filter(pl.col(_NUMBER).is_in(list(only)))
                first += rows.height
        return
    scan = pl.scan_parquet if begin.startswith(PARQUET) else pl.scan_ipc
    table = scan(path, glob=False) if scan is pl.scan_parquet else scan(path)
    if only is not None:
        table = table.with_row_index(_NUMBER).filter(pl.col(_NUMBER).is_in(list(only)))
    for rows in table.collect_batches(chunk_size=BATCH):
        yield first, rows
        first += rows.height


def _stream(file: IO[bytes]) -> Iterator[pl.DataFrame]:
    """The batches of an Arrow stream, each read together with the stream's schema and dictionaries."""
    before = b""
    while message := _message(file):
        kind, content = message
        if kind != _BATCH:
            before += content
        else:
            yield pl.read_ipc_stream(io.BytesIO(before + content + ARROW_STREAM + bytes(4)))


_BATCH = 3
"""The type of a message that holds a batch of rows; the others hold the schema or a dictionary."""


def _message(file: IO[bytes]) -> tuple[int, bytes] | None:
    """The type and the bytes of a stream's next message; None at the end.

    A message is a mark, the length of its description, the description (a table of a flatbuffer, which has
    the message's type and the length of its body), and the body.
    """
    head = file.read(8)
    if len(head) < 8 or head[:4] != ARROW_STREAM:
        return None
    (length,) = struct.unpack("<i", head[4:])
    if length <= 0:
        return None
    described = file.read(length)
    size = _field(described, 3, "<q")
    if not 0 <= size <= LARGEST_MESSAGE:
        raise EOFError(f"a message of {size} bytes")
    content = file.read(size)
    if len(content) < size:
        raise EOFError("it breaks off")
    return _field(described, 1, "<B"), head + described + content


def _field(described: bytes, number: int, form: str) -> int:
    """A field of the table in a flatbuffer; 0 where the table leaves it out."""
    (table,) = struct.unpack_from("<I", described)
    (back,) = struct.unpack_from("<i", described, table)
    (length,) = struct.unpack_from("<H", described, table - back)
    if (entry := 4 + 2 * number) >= length:
        return 0
    (place,) = struct.unpack_from("<H", described, table - back + entry)
    return int(struct.unpack_from(form, described, table + place)[0]) if place else 0
