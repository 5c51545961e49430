"""A complete log as skills: files are read one trace at a time, and only the skills are kept.

Bad lines are counted, named and skipped. With too many of them, the page would not describe the log, so
reading fails if more than ``most_bad`` of all lines are bad. A file without any trace fails too, unless it
was found in a folder beside traces. The members of an archive are like the files of a folder.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.logs.fields import Wanted
from skillpress.logs.files import found_files, listed
from skillpress.logs.formats import Format, formats_of, judged, read_record, unrecognised
from skillpress.logs.joining import Joiner, Kept, TracePiece
from skillpress.logs.missing_fields import NamedFields
from skillpress.logs.outcome import OutcomeField
from skillpress.logs.outcomes import Outcomes
from skillpress.logs.projection import NAMES_HELD, WORDS, Labels, TraceProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.records import (
    FileRecord,
    known_format,
    known_part,
    own_records,
    records,
    records_again,
    whole_runs,
)
from skillpress.logs.rollouts import is_rollouts, read_rollouts
from skillpress.logs.trace import (
    Bad,
    LeftOutError,
    NothingSaidError,
    PassedOver,
    Trace,
    TracePlace,
    TracesError,
    UnreadableTraceError,
)

BAD_NAMED = 10_000
"""Maximum number of bad lines that are named; all are counted."""
COPIES, SILENT = "lines copied from an earlier session", "sessions in which no agent acted"
ROLLOUTS = "skillpress rollouts"
"""The format of our own Parquet."""

Skills = tuple[str, ...]


@dataclass(slots=True)
class LoggedTrace:
    """The contents kept from one trace."""

    skills: Skills
    """Its skills, without the steps that have none. Equal sequences are one object."""
    steps: int
    success: bool | None
    outcome: str
    """The field that decided ``success``; empty if none did."""
    task: str
    version: str
    time: float | None
    place: TracePlace
    """Its record, or the last of its records."""
    several: tuple[TracePiece, ...] = ()
    """Its records, if several make it up."""

    @property
    def pieces(self) -> tuple[TracePiece, ...]:
        """Its record or records."""
        return self.several or (TracePiece(self.place),)


@dataclass
class Log:
    """The contents kept from a log."""

    files: list[Path]
    traces: list[LoggedTrace] = field(default_factory=list)
    """The traces in the order read."""
    alphabet: Skills = ()
    renamed: dict[str, str] = field(default_factory=dict)
    """Maps the projection's labels to skills."""
    formats: Counter[str] = field(default_factory=Counter)
    """Number of traces per format."""
    parquet: list[int] = field(default_factory=list)
    """The rollout files of skillpress."""
    unlabelled: Counter[str] = field(default_factory=Counter)
    """Maps labels without a skill to their number of steps; the empty label counts steps without a label."""
    bad: list[Bad] = field(default_factory=list)
    bad_lines: int = 0
    good_lines: int = 0
    """Records that are traces, or parts of some."""
    passed_over: list[PassedOver] = field(default_factory=list)
    """Files in folders, and members of archives, that hold no trace."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Counts of parts of the traces that are not steps, by reason; see ``Trace.left_out``."""
    called: int = 0
    """Steps that call a tool."""
    in_words: int = 0
    """Steps in words."""
    tools: Counter[str] = field(default_factory=Counter)
    """Maps the first ``NAMES_HELD`` tools to the number of their calls; the empty name counts calls that name
    none."""
    outcomes: Outcomes = field(default_factory=Outcomes)
    first: Trace | None = None
    """The first trace, with its texts."""
    warnings: list[str] = field(default_factory=list)
    """Warnings about outcomes and fields, one sentence each."""

    def __len__(self) -> int:
        return len(self.traces)

    @property
    def steps(self) -> int:
        """The steps of all traces."""
        return self.called + self.in_words

    @property
    def skills(self) -> list[Skills]:
        """The skills of each trace; the list is new at each call."""
        return [trace.skills for trace in self.traces]


def read_log(
    paths: Sequence[Path],
    projection: TraceProjection,
    wanted: Wanted,
    most_bad: float,
    progress: Callable[[int], None] = lambda traces: None,
) -> Log:
    """Read files and folders.

    Args:
        progress: called now and then with the number of records so far.

    Raises:
        TracesError: there is nothing to read, a named file has no trace, too many lines are bad, or a named
            field says neither yes nor no, or is in no trace.
        StorageError: a named file holds rollouts of a version that cannot be read. In a folder such a file is
        skipped.
    """
    named, passed = found_files(paths)
    log = Log([path for path, _ in named], passed_over=passed)
    fields = NamedFields(wanted)
    reader = _Reader(log, projection, wanted, fields, progress)
    for number, (path, in_folder) in enumerate(named):
        reader.read(number, path, in_folder)
    reader.join()
    if not log.traces:
        raise TracesError(f"no trace was found in {listed(paths)}: {_first_reason(log)}")
    lines = log.good_lines + log.bad_lines
    if log.bad_lines > most_bad * lines:
        raise TracesError(
            f"{log.bad_lines:,} of {lines:,} lines are not traces, more than --most-bad {most_bad:g} allows; "
            f"the first: {_first_reason(log)}"
        )
    fields.check()
    disputed = log.outcomes.withdraw_disputed()
    for trace in log.traces:
        if trace.outcome in disputed:
            trace.success = None
    log.warnings = [*log.outcomes.doubts(wanted.success.text if wanted.success else ""), *fields.doubts()]
    if wanted.judge is not None and wanted.judge.name in log.outcomes.fields:
        log.warnings += wanted.judge.doubts(log.outcomes.fields[wanted.judge.name])
    _settle(log, projection)
    if log.first is None:
        log.first = next((trace for _, trace in traces_at(log, wanted, [0])), None)
    return log


class _Reader:
    """Adds the traces of files to a log."""

    def __init__(
        self,
        log: Log,
        projection: TraceProjection,
        wanted: Wanted,
        fields: NamedFields,
        progress: Callable[[int], None],
    ) -> None:
        self._log, self._projection, self._wanted, self._progress = log, projection, wanted, progress
        self._fields, self._formats = fields, formats_of(wanted)
        self._joiner = Joiner()
        self._earlier: dict[str, dict[str, Any]] = {}
        """Each format's memory of the runs so far, used to recognise copies."""
        self._silent = ""
        """The reason why the last records without an agent are not a trace."""
        self._numbers = array("q")
        """The place of each of the log's traces in the order of reading."""
        self._labels: dict[tuple[Labels, ...], tuple[Labels, ...]] = {}
        self._tools: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}
        self._skills: dict[Skills, Skills] = {}
        self._texts: dict[str, str] = {}
        self._candidates: dict[tuple[OutcomeField, ...], tuple[OutcomeField, ...]] = {}

    def read(self, number: int, path: Path, in_folder: bool) -> None:
        """Add one file's traces. Its bad lines count unless it was only found beside traces."""
        log = self._log
        before, bad, passed = log.good_lines, len(log.bad), len(log.passed_over)
        try:
            if is_rollouts(path):
                self._read_rollouts(number, path)
            else:
                for member, found in groupby(
                    records(number, path, formats=self._formats), lambda record: record.place.member
                ):
                    self._read_member(path, member, found, in_folder)
        except StorageError as error:
            if not in_folder:
                raise
            log.passed_over.append(PassedOver(str(path), str(error)))
        if log.good_lines > before:
            return
        inside = log.passed_over[passed:]
        if in_folder and not inside:
            log.passed_over.append(PassedOver(str(path), "it is empty"))
        if not in_folder:
            why = f"{inside[0].file}: {inside[0].why}" if inside else _first_reason(log, bad, self._silent)
            raise TracesError(f"no trace was found in {path}: {why}")

    def _read_rollouts(self, number: int, path: Path) -> None:
        self._log.parquet.append(number)
        for episode, found in read_rollouts(path):
            trace = judged(found, self._wanted, _fields_of(found))
            self._log.good_lines += 1
            self._add(self._kept(trace, [TracePlace(number, episode, position=episode)], ROLLOUTS), trace)
            self._fields.rollout()

    def _read_member(self, path: Path, member: str, found: Iterable[FileRecord], in_folder: bool) -> None:
        """Add the traces of a file, or of a member of an archive."""
        log, name = self._log, f"{path}/{member}" if member else str(path)
        before, bad, counted = log.good_lines, len(log.bad), log.bad_lines
        parts: dict[tuple[str, str], tuple[Format, list[FileRecord]]] = {}
        for record in found:
            if (part := known_part(record.value, self._formats)) is None:
                self._read(name, record, known_format(record.value, self._formats), [record.place])
                continue
            _, held = parts.setdefault((part[0].name, part[1]), (part[0], []))
            held.append(record._replace(value=None) if record.place.offset >= 0 else record)
        for known, held in whole_runs(parts):
            places = [record.place for record in held]
            if all(place.offset >= 0 for place in places):
                held = list(records_again(path, places, self._formats))
            own = own_records(known, held, self._earlier)
            if copied := len(held) - len(own):
                log.left_out[COPIES] += copied
                log.good_lines += copied
            if own:
                values, places = [record.value for record in own], [record.place for record in own]
                self._read(name, FileRecord(places[0], values), known, places)
        if log.good_lines == before and (in_folder or member):
            why = log.bad[bad].why if len(log.bad) > bad else self._silent or "it is empty"
            log.passed_over.append(PassedOver(name, why))
            del log.bad[bad:]
            log.bad_lines = counted

    def _read(
        self, name: str, record: FileRecord, known: Format | None, places: Sequence[TracePlace]
    ) -> None:
        """Add one record, or the records that form one run."""
        try:
            if isinstance(record.value, UnreadableTraceError):
                raise record.value
            if known is None:
                raise UnreadableTraceError(unrecognised(record.value))
            trace = read_record(known, record.value, self._wanted)
            kept = self._kept(trace, places, known.name)
        except TracesError as error:
            raise TracesError(f"{name}, line {record.place.number}: {error}") from error
        except LeftOutError as reason:
            self._log.left_out[str(reason)] += len(places)
            return
        except NothingSaidError as error:
            self._silent = str(error)
            self._log.left_out[SILENT] += 1
            return
        except (UnreadableTraceError, RecursionError) as error:
            self._bad(name, record.place.number, error, len(places))
            return
        self._log.good_lines += len(places)
        self._fields.record(record.value, trace)
        if trace.call is None:
            self._add(kept, trace)
        else:
            self._joiner.add(trace.call, trace.steps, kept)
        if self._log.good_lines % 2000 == 0:
            self._progress(self._log.good_lines)

    def _bad(self, name: str, number: int, error: Exception, lines: int) -> None:
        self._log.bad_lines += lines
        if len(self._log.bad) < BAD_NAMED:
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self._log.bad.append(Bad(name, number, why))

    def _kept(self, trace: Trace, places: Sequence[TracePlace], known: str) -> Kept:
        labels = tuple(self._projection(trace.steps))
        tools = tuple(step.tool for step in trace.steps)
        return Kept(
            labels=self._labels.setdefault(labels, labels),
            tools=self._tools.setdefault(tools, tools),
            success=trace.success,
            task=self._texts.setdefault(trace.task, trace.task),
            version=self._texts.setdefault(trace.version, trace.version),
            time=trace.time,
            outcome=trace.outcome,
            score=trace.score,
            candidates=self._candidates.setdefault(trace.candidates, trace.candidates),
            left_out=trace.left_out,
            format=known,
            number=self._log.good_lines,
            pieces=tuple(TracePiece(place) for place in places),
        )

    def _add(self, kept: Kept, whole: Trace | None) -> None:
        log = self._log
        if not log.traces:
            log.first = whole
        skills = tuple(chain.from_iterable(kept.labels))
        log.traces.append(
            LoggedTrace(
                skills=self._skills.setdefault(skills, skills),
                steps=len(kept.labels),
                success=kept.success,
                outcome=self._texts.setdefault(kept.outcome, kept.outcome),
                task=kept.task,
                version=kept.version,
                time=kept.time,
                place=kept.pieces[-1].place,
                several=kept.pieces if len(kept.pieces) > 1 else (),
            )
        )
        self._numbers.append(kept.number)
        log.formats[kept.format] += 1
        log.left_out.update(kept.left_out)
        if () in kept.labels:
            log.unlabelled[""] += kept.labels.count(())
        log.outcomes.add(kept.outcome, kept.success, kept.score, kept.candidates)
        self._count(kept.tools)

    def _count(self, tools: Sequence[str | None]) -> None:
        log = self._log
        for tool in tools:
            if tool is None:
                log.in_words += 1
                continue
            log.called += 1
            if tool in log.tools or len(log.tools) < NAMES_HELD:
                log.tools[tool] += 1

    def join(self) -> None:
        """Add the runs that consist of model calls, each at the place of its first call."""
        log, before = self._log, len(self._log)
        for kept in self._joiner.runs():
            self._add(kept, None)
        log.left_out.update(self._joiner.left_out)
        if len(log) > before > 0:
            numbered = sorted(zip(self._numbers, log.traces, strict=True), key=lambda pair: pair[0])
            log.first = log.first if numbered[0][1] is log.traces[0] else None
            log.traces = [trace for _, trace in numbered]


def _fields_of(trace: Trace) -> Callable[[str], object]:
    """The fields of a trace of our own, which has no record."""
    return lambda path: getattr(trace, path, None)


def _settle(log: Log, projection: TraceProjection) -> None:
    """Turn the projection's labels into skills; steps whose label is not a skill become steps without one."""
    counts, sequences = Counter[str](), Counter(log.skills)
    for skills, times in sequences.items():
        for label in skills:
            counts[label] += times
    log.renamed = projection.settle(counts)
    log.alphabet = tuple(dict.fromkeys(log.renamed.values()))
    for label, count in counts.items():
        if label not in log.renamed:
            log.unlabelled[label.removeprefix(WORDS)] += count
    changed = {
        skills: tuple(log.renamed[label] for label in skills if label in log.renamed) for skills in sequences
    }
    for trace in log.traces:
        trace.skills = changed[trace.skills]


def _first_reason(log: Log, start: int = 0, otherwise: str = "") -> str:
    if len(log.bad) <= start:
        inside = log.passed_over
        return f"{inside[0].file}: {inside[0].why}" if inside and not start else otherwise or "it is empty"
    first = log.bad[start]
    return f"{first.file}, line {first.number}: {first.why}"
