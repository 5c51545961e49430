"""Some traces of a log, read a second time with everything that their steps hold.

A log keeps only skills and places. Pages, tables of rules and imitation want the texts of a few traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skillpress.logs.fields import Wanted
from skillpress.logs.formats import formats_of, read_record
from skillpress.logs.joining import TracePiece, joined
from skillpress.logs.records import known_format, known_part, records_again
from skillpress.logs.rollouts import read_rollouts
from skillpress.logs.trace import Trace, TracePlace, TracesError, UnreadableTraceError

if TYPE_CHECKING:
    from skillpress.logs.log import Log


def traces_at(log: Log, wanted: Wanted, which: Sequence[int]) -> Iterator[tuple[int, Trace]]:
    """Read some of a log's traces again, with everything their steps hold: (position in the log, trace). A
    trace whose file has changed since is left out."""
    for position, parts in parts_at(log, wanted, which):
        kept = log.traces[position]
        again = joined(parts, kept.pieces) if len(parts) > 1 else parts[0]
        if len(again.steps) == kept.steps:
            yield position, replace(again, success=kept.success, task=kept.task, version=kept.version)


def parts_at(log: Log, wanted: Wanted, which: Sequence[int]) -> Iterator[tuple[int, list[Trace]]]:
    """Read some of a log's traces again: (position in the log, a trace for each record that holds a
    conversation of the run). A trace whose file cannot be read as before is left out."""
    pieces = {position: log.traces[position].pieces for position in which}
    held: dict[TracePlace, object] = {}
    for number, path in enumerate(log.files):
        here = [piece.place for found in pieces.values() for piece in found if piece.place.file == number]
        if here and number in log.parquet:
            episodes = {log.traces[p].place.position: p for p in which if log.traces[p].place.file == number}
            for episode, trace in read_rollouts(path, frozenset(episodes)):
                yield episodes[episode], [trace]
        elif here:
            held.update(records_again(path, sorted(here), formats_of(wanted)))
            for position in [p for p, found in pieces.items() if all(x.place in held for x in found)]:
                if parts := _parts_of(pieces.pop(position), held, wanted):
                    yield position, parts


def _parts_of(pieces: Sequence[TracePiece], held: Mapping[TracePlace, object], wanted: Wanted) -> list[Trace]:
    """The traces of records that were read again; none if they have changed."""
    values, formats = [held[piece.place] for piece in pieces], formats_of(wanted)
    try:
        if (part := known_part(values[0], formats)) is not None:
            return [read_record(part[0], values, wanted)]
        found = [(known_format(value, formats), value) for value in values]
        traces = [read_record(known, value, wanted) for known, value in found if known is not None]
        return traces if len(traces) == len(pieces) else []
    except (UnreadableTraceError, TracesError, RecursionError):
        return []
