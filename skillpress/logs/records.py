"""The records that the values of a file hold, and some of these records again.

A value is a record, or a document that holds several: a list, an object with a list under ``traces``, or what
a format says (``Format.runs``). A row of a table is one record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from skillpress.logs.files import values
from skillpress.logs.formats import DAMAGED, FORMATS, Format, format_of, part_of, runs_in
from skillpress.logs.json_files import value_at
from skillpress.logs.trace import TracePlace, UnreadableTraceError

DEEPEST = 3
"""Maximum depth of nested documents that are opened."""
_ROWS = 40
"""Bits of a record's position that number the rows of a table; those above number the runs of a row."""


class FileRecord(NamedTuple):
    """One record of a file, or the reason why a part of the file has none."""

    place: TracePlace
    value: Any
    """A JSON value, or an ``UnreadableTraceError``."""


def records(
    file: int, path: Path, only: Sequence[TracePlace] | None = None, formats: Sequence[Format] = FORMATS
) -> Iterator[FileRecord]:
    """The records of a file, in order.

    Args:
        file: the file's number in the log.
        only: as in ``files.values``.
    """
    member, position = "", 0
    for value in values(path, only):
        if value.member != member:
            member, position = value.member, 0
        if value.row >= 0:
            runs = _runs(value.value, formats)
            for item, run in enumerate([value.value] if runs is None else runs):
                yield FileRecord(TracePlace(file, value.number, position=value.row + (item << _ROWS)), run)
            continue
        held = list(records_in(value.value, formats))
        for item, record in enumerate(held, 1):
            whole = len(held) == 1 and record is value.value
            place = TracePlace(
                file,
                value.number if whole or value.number != 1 else item,
                position=position,
                offset=value.offset if whole else -1,
                member=member,
            )
            position += 1
            yield FileRecord(place, record)


def records_again(
    path: Path, places: Sequence[TracePlace], formats: Sequence[Format] = FORMATS
) -> Iterator[FileRecord]:
    """The records at some places of one file, by seeking if its lines allow it."""
    if all(place.offset >= 0 for place in places):
        for place in places:
            try:
                yield FileRecord(place, value_at(path, place.offset))
            except OSError:
                return
        return
    missing = {(place.member, place.position): place for place in places}
    for found in records(places[0].file, path, places, formats):
        key = found.place.member, found.place.position
        if key in missing:
            yield FileRecord(missing.pop(key), found.value)
        if not missing:
            return


def records_in(value: Any, formats: Sequence[Format] = FORMATS, depth: int = DEEPEST) -> Iterator[Any]:
    """The records of a value; the value itself if it holds none."""
    held = _held(value, formats) if depth and isinstance(value, list | dict) else None
    if held is None:
        yield value
        return
    for item in held:
        yield from records_in(item, formats, depth - 1)


def _held(value: Any, formats: Sequence[Format]) -> Sequence[Any] | None:
    try:
        runs = runs_in(value, formats)
        if runs is not None:
            return runs
        held = items(value)
        return None if held is None or part_of(value, formats) or format_of(value, formats) else held
    except DAMAGED:
        return None


def items(value: Any) -> list[Any] | None:
    """The items of a list of objects, or of the list under ``traces``; None for any other value."""
    held = value.get("traces") if isinstance(value, Mapping) else value
    if not isinstance(held, list) or (held and not isinstance(held[0], list | dict)):
        return None
    return held


def _runs(row: Any, formats: Sequence[Format]) -> Sequence[Any] | None:
    """The runs that the user's paths find in a row of a table; None if it is a record itself."""
    return None if formats is FORMATS or not isinstance(row, dict) else runs_in(row, formats)


def known_format(value: Any, formats: Sequence[Format] = FORMATS) -> Format | None:
    """The format of a record; None if no format recognises it."""
    try:
        return format_of(value, formats)
    except DAMAGED:
        return None


def known_part(value: Any, formats: Sequence[Format] = FORMATS) -> tuple[Format, str] | None:
    """The format and the run of a record that is only a part of a run."""
    try:
        return None if isinstance(value, UnreadableTraceError) else part_of(value, formats)
    except DAMAGED:
        return None


def whole_runs(
    parts: Mapping[tuple[str, str], tuple[Format, list[FileRecord]]],
) -> Iterator[tuple[Format, list[FileRecord]]]:
    """The records of each run. Records that name no run, such as summaries, belong to the first run that is
    named.
    """
    for (name, key), (known, held) in parts.items():
        others = [other for of, other in parts if of == name and other]
        nameless = parts.get((name, ""), (known, []))[1] if others and key == others[0] else []
        if key or not others:
            yield known, sorted([*held, *nameless], key=lambda record: record.place.position)


def own_records(
    known: Format, held: list[FileRecord], earlier: dict[str, dict[str, Any]]
) -> list[FileRecord]:
    """The records of a run without copies of the records of runs before it.

    Args:
        earlier: each format's memory of earlier runs; this run is added.
    """
    if known.own is None:
        return held
    own = known.own([record.value for record in held], earlier.setdefault(known.name, {}))
    return [held[place] for place in own]
