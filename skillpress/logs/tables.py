"""Read rows of other programs' tables as records: Parquet, and Arrow as files or streams (a Hugging Face
dataset on disk is a folder of these).

Rows are read in batches, so that a table may be larger than the memory. A field without a value is left out,
as JSON would do, because a table has a column for every field of any of its records.
"""

from __future__ import annotations

import datetime
import io
import os
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import polars as pl

from skillpress.logs.expansion import ExpansionError, check_expansion
from skillpress.logs.json_files import Value
from skillpress.logs.table_sizes import BATCH as BATCH_OF_ROWS
from skillpress.logs.table_sizes import arrow_bytes, field, messages, parquet_bytes
from skillpress.logs.trace import UnreadableTraceError

ROWS = 16
"""Number of rows that are Python values at the same time."""
BATCH = 256
"""Number of rows in memory at the same time, unless the file's own groups are larger."""
PARQUET, ARROW, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
"""The first bytes of each kind of file."""


def row_values(path: Path, begin: bytes, only: frozenset[int] | None = None) -> Iterator[Value]:
    """The rows of a table, numbered from 1 on.

    Args:
        begin: the first bytes of the file.
        only: the wanted rows, counted from 0; None reads all of them.
    """
    try:
        _check_size(path, begin)
        given, stored = 0, path.stat().st_size
        for first, rows in _batches(path, begin, only):
            for place, row in enumerate(rows.iter_rows(named=True, buffer_size=ROWS), first):
                number = row.pop(_NUMBER) if only is not None else place
                value = plain(row)
                given += characters(value)
                check_expansion(given, stored)  # a text that is stored once may be in every row
                yield Value(number + 1, -1, value=value, row=number)
    except UnreadableTraceError as error:
        yield Value(0, -1, value=error)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, struct.error, EOFError) as error:
        yield Value(0, -1, value=UnreadableTraceError(f"the table cannot be read ({str(error)[:120]})"))


def characters(value: Any) -> int:
    """Number of characters of all texts in a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(characters, value.values()))
    return sum(map(characters, value)) if isinstance(value, list) else 0


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
    before, end = b"", ARROW_STREAM + bytes(4)
    for described, start, size in messages(file):
        file.seek(start)
        content = file.read(size)
        if len(content) < size:
            raise EOFError("it breaks off")
        whole = ARROW_STREAM + struct.pack("<i", len(described)) + described + content
        if field(described, 1, "<B") == BATCH_OF_ROWS:
            yield pl.read_ipc_stream(io.BytesIO(before + whole + end))
        else:
            before += whole


def _check_size(path: Path, begin: bytes) -> None:
    """Refuse a table that says it expands too far, before any part is unpacked.

    Raises:
        ExpansionError: it does.
        UnreadableTraceError: its description cannot be understood.
    """
    with path.open("rb") as file:
        stored = os.fstat(file.fileno()).st_size
        try:
            expanded = (parquet_bytes if begin.startswith(PARQUET) else arrow_bytes)(file)
        except (struct.error, IndexError, ValueError, KeyError, TypeError, EOFError, OSError) as error:
            if isinstance(error, ExpansionError):
                raise
            # The reader may understand a description that this cannot, so it is not asked.
            raise UnreadableTraceError(f"the table cannot be read (its description: {error})") from error
    check_expansion(expanded, stored)
