"""Find the files that hold records, open each, and say what the others are. The content decides, not the
name. These are read: JSON (lines or documents, in UTF-8, or UTF-16 with its mark), JSON compressed with gzip,
zip archives of such files, and tables (Parquet, Arrow). A folder with a file for each event of one
conversation is read like one file.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from skillpress.logs.archives import ZIPS, member_values
from skillpress.logs.event_folders import event_files, event_values, holds_copies
from skillpress.logs.expansion import Expander
from skillpress.logs.json_files import Value, text_values, value_at
from skillpress.logs.tables import ARROW, ARROW_STREAM, PARQUET, row_values
from skillpress.logs.trace import PassedOver, TracePlace, TracesError, UnreadableTraceError

GZIP = b"\x1f\x8b"
HEAD = 512
"""Bytes that show what a file is."""
FOREIGN = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x7fELF", "an executable"),
    (b"MZ", "an executable"),
    (b"\xcf\xfa\xed\xfe", "an executable"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd, which is not read; decompress it"),
    (b"\xfd7zXZ\0", "compressed with xz, which is not read; decompress it"),
    (b"BZh", "compressed with bzip2, which is not read; decompress it"),
    (b"7z\xbc\xaf", "a 7z archive, which is not read; unpack it"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
)
"""Beginnings of files that hold no records, and what they are."""
TABLES = (PARQUET, ARROW, ARROW_STREAM)
NOT_SEARCHED = frozenset([".git", ".venv", "node_modules", "__pycache__"])
"""Folders with many files and no logs."""


def values(path: Path, only: Sequence[TracePlace] | None = None) -> Iterator[Value]:
    """The values of a file, in order. A part that cannot be read becomes a value that says why.

    Args:
        only: the places whose values are wanted. Others may be yielded too; if the file allows it, only the
        wanted ones are read.
    """
    try:
        if path.is_dir():
            yield from event_values(path)
            return
        with path.open("rb") as file:
            head = file.read(HEAD)
        if head.startswith(ZIPS):
            members = None if only is None else frozenset(place.member for place in only)
            yield from member_values(path, _opened_values, members)
        elif head.startswith(TABLES):
            rows = None if only is None else frozenset(place.number - 1 for place in only)
            yield from row_values(path, head, rows)
        elif only is not None and all(place.offset >= 0 for place in only):
            for place in only:
                yield Value(place.number, place.offset, value=value_at(path, place.offset))
        else:
            with path.open("rb") as file:
                yield from _opened_values(file, Expander(os.fstat(file.fileno()).st_size))
    except UnreadableTraceError as error:
        yield Value(0, -1, value=error)
    except OSError as error:
        yield Value(0, -1, value=UnreadableTraceError(f"cannot be read ({error.strerror or error})"))


def _opened_values(file: IO[bytes], expander: Expander) -> Iterator[Value]:
    """The values of an opened file that is neither an archive nor a table.

    Raises:
        ExpansionError: it expands too far.
    """
    head = _head(file)
    if why := _foreign(head):
        yield Value(0, -1, value=UnreadableTraceError(why))
    elif head.startswith(GZIP):
        try:
            for value in _opened_values(*expander.gzip(file)):
                yield value._replace(offset=-1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Value(0, -1, value=UnreadableTraceError(f"the compressed file breaks off ({error})"))
    elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            yield from text_values(cast(IO[bytes], codecs.EncodedFile(file, "utf-8", "utf-16")), sought=False)
        except UnicodeError as error:
            yield Value(0, -1, value=UnreadableTraceError(f"not UTF-16: {error}"))
    else:
        yield from text_values(file, sought=True)


def _head(file: IO[bytes]) -> bytes:
    head = file.read(HEAD)
    file.seek(0)
    return head


def _foreign(head: bytes) -> str | None:
    """A description of a file that holds no records; None if it may hold some."""
    for begin, kind in FOREIGN:
        if head.startswith(begin):
            return kind
    if head[257:262] == b"ustar":
        return "a tar archive, which is not read; unpack it"
    if head.startswith((*ZIPS, *TABLES)):
        return "an archive or a table inside an archive, which is not read; unpack it"
    odd = sum(byte < 32 and byte not in b"\0\t\n\r\f\x1b" for byte in head)
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "binary data" if odd > len(head) / 20 and not utf16 and not head.startswith(GZIP) else None


def found_files(paths: Sequence[Path]) -> tuple[list[tuple[Path, bool]], list[PassedOver]]:
    """Each file once: (file, whether it was found in a folder); and the files that are skipped unread.

    Raises:
        TracesError: a path is neither a file nor a folder, or there are no files.
    """
    found: dict[Path, tuple[Path, bool]] = {}
    passed: list[PassedOver] = []
    for path in paths:
        if path.is_dir():
            for file in _inside(path, passed):
                _add(found, passed, file, True)
        elif path.is_file():
            _add(found, passed, path, False)
        elif path.exists():
            raise TracesError(
                f"{path}: a pipe or a device can be read only once; write it to a file and name the file"
            )
        else:
            raise TracesError(
                f"{path}: no such file or folder; name files of traces, or folders that hold some"
            )
    if not found:
        raise TracesError(f"no files were found in {listed(paths)}")
    return list(found.values()), passed


def _add(found: dict[Path, tuple[Path, bool]], passed: list[PassedOver], file: Path, in_folder: bool) -> None:
    """Add a file unless it was already added under another name, because its runs would count twice."""
    same = file.resolve()
    if same not in found:
        found[same] = (file, in_folder)
    elif in_folder and found[same][0] != file:
        passed.append(PassedOver(str(file), f"the same file as {found[same][0]}"))


def _inside(folder: Path, passed: list[PassedOver]) -> Iterator[Path]:
    """The files of a folder and its folders, by name; a folder of events is one of them. Links to folders are
    not followed."""

    def failed(error: OSError) -> None:
        passed.append(PassedOver(str(error.filename), f"cannot be read ({error.strerror})"))

    inside, conversations = list[Path](), set[Path]()
    for place, folders, names in os.walk(folder, onerror=failed):
        passed += [
            PassedOver(str(Path(place, name)), "a folder that is not searched")
            for name in NOT_SEARCHED.intersection(folders)
        ]
        copies = [name for name in folders if holds_copies(Path(place, name))]
        passed += [PassedOver(str(Path(place, name)), "copies of the events beside it") for name in copies]
        folders[:] = [name for name in folders if name not in NOT_SEARCHED and name not in copies]
        events = event_files(Path(place), names)
        if events:
            conversations.add(Path(place))
        inside += [Path(place, name) for name in names if Path(place, name) not in events]
    for file in sorted([*inside, *conversations]):
        if file.is_file() or file in conversations:
            yield file
        else:
            passed.append(PassedOver(str(file), "neither a file nor a folder"))


def listed(paths: Sequence[Path]) -> str:
    """The first paths, for a message."""
    return ", ".join(map(str, paths[:5])) + (" ..." if len(paths) > 5 else "")
