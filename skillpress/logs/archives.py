"""The members of a zip, read one after another and never unpacked to disk.

A log of Inspect (``.eval``) is a zip with a header and a member for each sample. Each sample is given out as
the log would hold it if it were one JSON document, with the header's account of the evaluation.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from skillpress.logs.expansion import Expander, ExpansionError, check_expansion
from skillpress.logs.json_files import Value, parsed
from skillpress.logs.trace import UnreadableTraceError

ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
"""How the files begin; the second is an empty one."""
HEADERS, SAMPLES = ("header.json", "_journal/start.json"), "samples/"
"""Names of the members with the header (the second one if the evaluation did not end), and of their folder of
samples."""
LARGEST_HEADER = 64 << 20
END, LONGEST_END = b"PK\x05\x06", 22 + 65535
"""How the end of a zip begins, and how long it may be, with a comment."""
LARGEST_DIRECTORY = 16 << 20
"""The longest list of members that is read, in bytes; it has room for some 150,000."""
BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, RuntimeError)
"""Exceptions raised for a damaged zip; RuntimeError means a password, or a compression that Python cannot
read."""


def member_values(
    path: Path, read: Callable[[IO[bytes], Expander], Iterator[Value]], only: frozenset[str] | None = None
) -> Iterator[Value]:
    """The values of all members, in the archive's order.

    Args:
        read: gives the values of one opened member; the second argument opens what is compressed in it.
        only: the wanted members; None reads all of them.
    """
    try:
        stored = path.stat().st_size
        _check_directory(path, stored)
        with zipfile.ZipFile(path) as archive:
            check_expansion(sum(info.file_size for info in archive.infolist()), stored)
            header = _header(archive)
            for info in archive.infolist():
                name = info.filename
                foreign = header is not None and not name.startswith(SAMPLES)
                if not info.is_dir() and not foreign and (only is None or name in only):
                    for value in _member(archive, info, read, Expander(stored, 1)):
                        yield _sample(value, header)
    except ExpansionError as error:
        yield Value(0, -1, value=error)
    except BROKEN as error:
        yield Value(0, -1, value=UnreadableTraceError(f"a zip that cannot be read ({error})"))


def _member(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    read: Callable[[IO[bytes], Expander], Iterator[Value]],
    expander: Expander,
) -> Iterator[Value]:
    name = info.filename
    try:
        with archive.open(info) as file:
            for value in read(expander.counted(file), expander):
                yield value._replace(member=name, offset=-1)
    except ExpansionError as error:
        yield Value(0, -1, value=error, member=name)
    except BROKEN as error:
        yield Value(0, -1, value=UnreadableTraceError(f"cannot be read ({error})"), member=name)


def _check_directory(path: Path, stored: int) -> None:
    """Refuse a zip whose list of members is too long to be held, before it is read.

    Raises:
        ExpansionError: it is.
    """
    with path.open("rb") as file:
        file.seek(max(0, stored - LONGEST_END))
        end = file.read()
    at = end.rfind(END)
    if at >= 0 and len(end) >= at + 16:
        (length,) = struct.unpack_from("<I", end, at + 12)
        if length > LARGEST_DIRECTORY:
            raise ExpansionError(
                f"its list of members has {length:,} bytes, more than the {LARGEST_DIRECTORY:,} that are "
                f"read; unpack it and name the folder"
            )


def _header(archive: zipfile.ZipFile) -> Any:
    """What an Inspect log says about its evaluation; None if this is not such a log."""
    for name in HEADERS:
        try:
            with archive.open(name) as file:
                value = parsed(file.read(LARGEST_HEADER))
        except (KeyError, *BROKEN):
            continue
        if isinstance(value, dict) and isinstance(value.get("eval"), dict):
            return {"status": "started", **value}
    return None


def _sample(value: Value, header: Any) -> Value:
    if header is None or not isinstance(value.value, dict):
        return value
    return value._replace(value={**header, "samples": [value.value]})
