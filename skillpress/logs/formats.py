"""The formats of records in JSON. A new one is a file with ``recognises`` (or ``run_of``) and ``read``, and a
line in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from skillpress.logs import (
    agents_sdk,
    atif,
    chat,
    chat_lines,
    claude_code,
    codex,
    inspect_logs,
    known_paths,
    langchain,
    langfuse,
    mlflow_traces,
    openhands,
    otlp,
    rollout_rows,
    rows,
    sharegpt,
    swe_agent,
    verifiers,
)
from skillpress.logs.fields import Wanted, dig, seconds
from skillpress.logs.outcome import outcome_at
from skillpress.logs.read_by_paths import ReadByPaths
from skillpress.logs.thoughts import without_thoughts
from skillpress.logs.trace import Trace, UnreadableTraceError
from skillpress.logs.trainers import Trl, Verl

SHOWN = 200
"""Maximum number of characters of an error about a record, because the record's own text may be in it."""
DAMAGED = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
"""Exceptions that a record of an unforeseen shape may cause."""


@dataclass(frozen=True)
class Format:
    """How records of one format are recognised and read."""

    name: str
    recognises: Callable[[Any], bool]
    """Whether a JSON value is one of the format's records."""
    read: Callable[[Any], Trace]
    """The trace with everything that the format says about it; raises UnreadableTraceError."""
    field: Callable[[Any, str], Any] = dig
    """The value of a field that the user named; None if there is none."""
    runs: Callable[[Any], Sequence[Any] | None] | None = None
    """The records of a JSON value that holds several runs; None if the value is not such a document."""
    run_of: Callable[[Any], str | None] | None = None
    """For a format that writes one run as many records, such as an event or a span on each line: the key of
    the run that a record belongs to, or None if the record is not one of these. All records with one key, in
    the file's order and as a list, are passed to ``recognises`` and ``read``. A key may be empty."""
    own: Callable[[Sequence[Any], dict[str, Any]], list[int]] | None = None
    """For a format whose runs may begin with a copy of another run's records: the positions of a run's own
    records. The mapping remembers earlier runs, and this run is added to it."""


def _of(name: str, module: ModuleType) -> Format:
    """The format of a module: its ``recognises`` and ``read``, and ``field``, ``runs``, ``run_of`` and
    ``own`` if it has them. Without ``recognises``, a record is the list of values with the same key by
    ``run_of``."""
    optional = {
        part: getattr(module, part) for part in ("field", "runs", "run_of", "own") if hasattr(module, part)
    }

    def parts(record: Any) -> bool:
        keys = {module.run_of(each) for each in record} if isinstance(record, list) else {None}
        return len(keys) == 1 and None not in keys

    return Format(name, getattr(module, "recognises", parts), read=module.read, **optional)


def _by_paths(name: str, known: ReadByPaths) -> Format:
    """The format that paths describe."""
    runs, run_of = known.runs if known.paths.run else None, known.run_of if known.of_items else None
    return Format(name, known.recognises, read=known.read, field=known.field, runs=runs, run_of=run_of)


_WHOLE = (
    _of("ATIF", atif),
    _of("MLflow traces", mlflow_traces),
    _of("Claude Code sessions", claude_code),
    _of("Codex sessions", codex),
    _of("skillpress rows", rollout_rows),
    _of("OpenTelemetry spans", otlp),
    _of("Langfuse exports", langfuse),
    _of("inspect logs", inspect_logs),
    _of("SWE-agent trajectories", swe_agent),
    _of("OpenHands", openhands),
    Format("verl rollouts", Verl.recognises, read=Verl.read),
    Format("TRL completions", Trl.recognises, read=Trl.read),
    *(_by_paths(known.name, known) for known in known_paths.TABLE),
    _of("verifiers results", verifiers),
    _of("agents SDK run states", agents_sdk),
    _of("LangChain messages", langchain),
    _of("ShareGPT", sharegpt),
    _of("chat completions", chat),
    _of("chat messages", chat_lines),
)
"""The formats, the more specific first: the first that recognises a record reads it."""
_ROWS = rows.Rows([(known.recognises, known.read) for known in _WHOLE])
FORMATS = (*_WHOLE, Format("rows of a table", _ROWS.recognises, read=_ROWS.read))


def formats_of(wanted: Wanted) -> Sequence[Format]:
    """The formats that records may have: the one that the user's paths describe, or all known formats."""
    if wanted.paths is None:
        return FORMATS
    return [_by_paths("own paths", ReadByPaths(wanted.paths))]


def format_of(record: Any, formats: Sequence[Format] = FORMATS) -> Format | None:
    """The format of a JSON value; None if no format recognises it."""
    return next((known for known in formats if known.recognises(record)), None)


def runs_in(value: Any, formats: Sequence[Format] = FORMATS) -> Sequence[Any] | None:
    """The records of a JSON value that holds several runs; None if it is a record itself, or unknown."""
    for known in formats:
        if known.runs is not None and (found := known.runs(value)) is not None:
            return found
    return None


def part_of(value: Any, formats: Sequence[Format] = FORMATS) -> tuple[Format, str] | None:
    """The format and the run of a JSON value that is only a part of a run; None for any other value."""
    for known in formats:
        if known.run_of is not None and (key := known.run_of(value)) is not None:
            return known, key
    return None


def read_record(known: Format, record: Any, wanted: Wanted) -> Trace:
    """A record's trace, with the fields that the user named.

    Raises:
        UnreadableTraceError: the record is damaged.
        TracesError: a named field says neither yes nor no.
    """
    try:
        trace = _with_fields(_spoken(known.read(record)), known, record, wanted)
        trace = trace if wanted.call is None else wanted.call.read(trace)
        return judged(trace, wanted, lambda path: known.field(record, path))
    except UnreadableTraceError:
        raise
    except DAMAGED as error:
        raise UnreadableTraceError(
            f"the {known.name} record is damaged: {type(error).__name__}: {str(error)[:SHOWN]}"
        ) from error


def judged(trace: Trace, wanted: Wanted, value_at: Callable[[str], Any]) -> Trace:
    """The trace with the outcome of the user's labels or rule, if there is one."""
    if wanted.judge is None:
        return trace
    success = wanted.judge(trace, value_at)
    return replace(trace, outcome=wanted.judge.name, success=success, score=None, candidates=())


def _spoken(trace: Trace) -> Trace:
    """The trace with its steps in words as they are without the agent's thoughts."""
    if not any(step.tool is None and isinstance(step.content, str) for step in trace.steps):
        return trace
    steps = tuple(
        step._replace(content=without_thoughts(step.content))
        if step.tool is None and isinstance(step.content, str)
        else step
        for step in trace.steps
    )
    return replace(trace, steps=steps)


def _with_fields(trace: Trace, known: Format, record: Any, wanted: Wanted) -> Trace:
    if trace.success not in (None, True, False):
        raise UnreadableTraceError(f"{known.name}: won is {trace.success!r:.80}, must be true or false")
    changed: dict[str, Any] = {}
    elsewhere = wanted.judge is not None or (wanted.paths is not None and wanted.paths.outcome)
    if elsewhere and wanted.success is None:
        changed["candidates"] = ()
    elif wanted.success is None and not trace.outcome and trace.success is None and not trace.candidates:
        changed |= outcome_at(record)._asdict()
    elif wanted.success is not None:
        value = known.field(record, wanted.success.path)
        changed["success"], changed["score"] = wanted.success.of(value), None
        changed["outcome"], changed["candidates"] = wanted.success.path, ()
    for name in ("task", "version"):
        if (path := getattr(wanted, name)) is not None:
            value = known.field(record, path)
            changed[name] = "" if value is None else str(value)[:200]
    if wanted.time is not None:
        changed["time"] = seconds(known.field(record, wanted.time))
    return replace(trace, **changed) if changed else trace


def unrecognised(record: Any) -> str:
    """Why a JSON value is not a trace, for the list of bad lines."""
    if isinstance(record, Mapping):
        keys = ", ".join(sorted(map(str, record))[:8])[:120] or "none"
        return f"not a known format; its keys are {keys}"
    return f"not a known format; it is a {type(record).__name__}"
