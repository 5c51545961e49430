"""A whole log as skills: files are read one trace at a time, and only the skills are kept.

Bad lines are counted, named and skipped. If they were many, the page would describe something else than the
log. So reading fails if more than ``most_bad`` of all lines are bad. A file without any trace fails too,
unless it was found in a folder beside traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.doors.traces.fields import Wanted
from skillpress.doors.traces.formats import Format, format_of, read_record, unrecognised
from skillpress.doors.traces.json_files import Value, value_at, values
from skillpress.doors.traces.missing_fields import NamedFields
from skillpress.doors.traces.projection import WORDS, TraceProjection
from skillpress.doors.traces.rollouts import is_parquet, read_rollouts
from skillpress.doors.traces.trace import Bad, Place, Trace, TracesError, UnreadableTraceError

SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet", ".json.gz", ".jsonl.gz", ".ndjson.gz")
"""The endings of files that are read in a folder. A file named by the user is read whatever its name."""
HOPELESS = 1000
"""Lines without any trace before a file is given up."""
BAD_NAMED = 10_000
"""The most bad lines that are named; all are counted."""
ROLLOUTS = "skillpress rollouts"
"""The format of our own Parquet."""

Skills = tuple[str, ...]


@dataclass
class Log:
    """The contents kept from a log: lists with an entry per trace, in the order read."""

    files: list[Path]
    skills: list[Skills] = field(default_factory=list)
    """Skills of each trace, without the steps that have none."""
    steps: list[int] = field(default_factory=list)
    success: list[bool | None] = field(default_factory=list)
    task: list[str] = field(default_factory=list)
    version: list[str] = field(default_factory=list)
    time: list[float | None] = field(default_factory=list)
    place: list[Place] = field(default_factory=list)
    alphabet: Skills = ()
    renamed: dict[str, str] = field(default_factory=dict)
    """The projection's labels to skills."""
    formats: Counter[str] = field(default_factory=Counter)
    """Number of traces per format."""
    parquet: list[int] = field(default_factory=list)
    """The files that are our own rollouts."""
    unlabelled: Counter[str] = field(default_factory=Counter)
    """Labels without a skill to their number of steps; the empty label counts steps without any."""
    bad: list[Bad] = field(default_factory=list)
    bad_lines: int = 0
    passed_over: list[Path] = field(default_factory=list)
    """Files in a folder that hold no trace."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What the traces hold beside their steps, by reason; see ``Trace.left_out``."""
    doubt: str | None = None
    """A warning for the user about the named success field; None if there is nothing odd."""

    def __len__(self) -> int:
        return len(self.skills)


def read_log(
    paths: Sequence[Path],
    projection: TraceProjection,
    wanted: Wanted,
    most_bad: float,
    progress: Callable[[int], None] = lambda traces: None,
) -> Log:
    """Read files and folders.

    Args:
        progress: called now and then with the number of traces so far.

    Raises:
        TracesError: there is nothing to read, a named file has no trace, too many lines are bad, or a named
            field says neither yes nor no, or is in no trace.
            StorageError: a named file is Parquet but not a rollout file of this version. Such a file in a
                folder is skipped.
    """
    named = _files(paths)
    log = Log([path for path, _ in named])
    fields = NamedFields(wanted)
    reader = _Reader(log, projection, wanted, fields, progress)
    for number, (path, in_folder) in enumerate(named):
        reader.read(number, path, in_folder)
    if not len(log):
        raise TracesError(f"no trace in {_listed(paths)}: {_first_reason(log)}")
    lines = len(log) + log.bad_lines
    if log.bad_lines > most_bad * lines:
        raise TracesError(
            f"{log.bad_lines:,} of {lines:,} lines are not traces, more than --most-bad {most_bad:g} allows; "
            f"the first: {_first_reason(log)}"
        )
    fields.check()
    log.doubt = fields.doubt()
    _settle(log, projection)
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
        self._fields = fields
        self._shared: dict[Skills, Skills] = {}
        self._texts: dict[str, str] = {}

    def read(self, number: int, path: Path, in_folder: bool) -> None:
        """Add one file's traces. Its bad lines count unless it was only found beside traces."""
        before, bad, counted = len(self._log), len(self._log.bad), self._log.bad_lines
        if is_parquet(path):
            self._log.parquet.append(number)
            try:
                for episode, trace in read_rollouts(path):
                    self._add(trace, Place(number, episode, episode), ROLLOUTS)
                    self._fields.rollout()
            except StorageError:
                if not in_folder:
                    raise
        else:
            self._read_json(number, path)
        if len(self._log) > before:
            return
        if not in_folder:
            raise TracesError(f"no trace in {path}: {_first_reason(self._log, bad)}")
        del self._log.bad[bad:]
        self._log.bad_lines = counted
        self._log.passed_over.append(path)

    def _read_json(self, number: int, path: Path) -> None:
        known: Format | None = None
        found = passed = 0
        for index, value in enumerate(values(path)):
            known, trace = _trace(value, known, self._wanted, path)
            if isinstance(trace, Trace):
                found += 1
                assert known is not None
                self._add(trace, Place(number, value.number, index, value.offset), known.name)
                self._fields.record(value.value, trace)
                continue
            passed += 1
            self._log.bad_lines += 1
            if len(self._log.bad) < BAD_NAMED:
                self._log.bad.append(Bad(str(path), value.number, trace))
            if not found and passed == HOPELESS:
                return

    def _add(self, trace: Trace, place: Place, known: str) -> None:
        log = self._log
        labels = self._projection(trace.steps)
        skills = tuple(label for label in labels if label is not None)
        log.skills.append(self._shared.setdefault(skills, skills))
        log.steps.append(len(labels))
        if len(skills) < len(labels):
            log.unlabelled[""] += len(labels) - len(skills)
        log.success.append(trace.success)
        log.task.append(self._texts.setdefault(trace.task, trace.task))
        log.version.append(self._texts.setdefault(trace.version, trace.version))
        log.time.append(trace.time)
        log.place.append(place)
        log.formats[known] += 1
        log.left_out.update(trace.left_out)
        if len(log) % 2000 == 0:
            self._progress(len(log))


def traces_at(log: Log, wanted: Wanted, which: Sequence[int]) -> Iterator[tuple[int, Trace]]:
    """Read some of a log's traces again, with everything their steps hold: (position in the log, trace)."""
    for number, path in enumerate(log.files):
        here = {place.position: p for p in which if (place := log.place[p]).file == number}
        if number in log.parquet:
            for episode, trace in read_rollouts(path, frozenset(here)) if here else ():
                yield here[episode], trace
            continue
        for index, value in _values_at(path, {index: log.place[p] for index, p in here.items()}):
            found = _trace(value, None, wanted, path)[1]
            if isinstance(found, Trace):
                yield here[index], found


def _values_at(path: Path, places: Mapping[int, Place]) -> Iterator[tuple[int, Value]]:
    """Some values of a file, by seeking if its lines allow it."""
    if all(place.offset >= 0 for place in places.values()):
        for index, place in places.items():
            yield index, Value(place.number, place.offset, value_at(path, place.offset))
    else:
        yield from ((index, value) for index, value in enumerate(values(path)) if index in places)


def _trace(
    value: Value, known: Format | None, wanted: Wanted, path: Path
) -> tuple[Format | None, Trace | str]:
    """A value's format and trace, or the reason why it has none; ``known`` is the previous value's format."""
    if isinstance(value.value, UnreadableTraceError):
        return known, str(value.value)
    if known is None or not known.recognises(value.value):
        known = format_of(value.value)
    if known is None:
        return None, unrecognised(value.value)
    try:
        return known, read_record(known, value.value, wanted)
    except UnreadableTraceError as error:
        return known, str(error)
    except TracesError as error:
        raise TracesError(f"{path}, line {value.number}: {error}") from error


def _settle(log: Log, projection: TraceProjection) -> None:
    """Turn the projection's labels into skills; steps whose label is not a skill become steps without one."""
    counts: Counter[str] = Counter()
    for skills, times in Counter(log.skills).items():
        for label in skills:
            counts[label] += times
    log.renamed = projection.settle(counts)
    log.alphabet = tuple(dict.fromkeys(log.renamed.values()))
    if not log.alphabet or not counts.keys() & log.renamed.keys():
        raise TracesError(
            "no step has a skill: no rule fits an action, or (without --rules) no step calls a tool or acts"
        )
    for label, count in counts.items():
        if label not in log.renamed:
            log.unlabelled[label.removeprefix(WORDS)] += count
    changed = {
        skills: tuple(log.renamed[label] for label in skills if label in log.renamed)
        for skills in set(log.skills)
    }
    log.skills = [changed[skills] for skills in log.skills]


def _files(paths: Sequence[Path]) -> list[tuple[Path, bool]]:
    """(file, whether it was found in a folder)."""
    found: list[tuple[Path, bool]] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.name.lower().endswith(SUFFIXES))
            found += [(file, True) for file in inside if file.is_file()]
        elif path.is_file():
            found.append((path, False))
        elif path.exists():
            raise TracesError(
                f"{path}: is a pipe or a device, readable only once; write it to a file and name the file"
            )
        else:
            raise TracesError(
                f"{path}: no such file or folder; name files of traces, or folders that hold some"
            )
    if not found:
        raise TracesError(f"no files in {_listed(paths)}: looked for {', '.join(SUFFIXES)}")
    return found


def _first_reason(log: Log, start: int = 0) -> str:
    if len(log.bad) <= start:
        return "it is empty"
    first = log.bad[start]
    return f"{first.file}, line {first.number}: {first.why}"


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:5])) + (" ..." if len(paths) > 5 else "")
