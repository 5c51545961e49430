"""Problems with a log's fields: a named field that no trace has, and times that cannot be read. Without this
check every trace would silently lack such a field. So reading fails, and the command falls back on the
outcomes that the log itself keeps, if it has any (``cli/reading.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.core.errors import did_you_mean
from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.trace import Trace, TracesError

OF_ROLLOUTS = {"success": "won", "task": "task_id", "version": "policy", "time": "policy_version"}
"""Maps each option to the field of our own rollout files that answers it, whatever field the user names."""
_LEVELS, _SHOWN = 4, 12
_TIMES = ("created", "created_at", "timestamp", "time")
"""Paths where records keep their time."""


class MissingFieldError(TracesError):
    """No trace has a field that the user named."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option
        """The option's name without its dashes."""


class NamedFields:
    """Which of the fields that the user named occurred in the traces so far."""

    def __init__(self, wanted: Wanted) -> None:
        success = wanted.success
        every = {
            "success": None if success is None else success.path,
            "task": wanted.task,
            "version": wanted.version,
            "time": wanted.time,
            "outcome": _outcome(wanted),
        }
        self._named = {option: path for option, path in every.items() if path is not None}
        self._there = Counter[str]()
        self._example: Any = None
        self._rollouts = self._records = self._unread_times = 0

    def rollout(self) -> None:
        """Count a trace of one of our own rollout files."""
        self._rollouts += 1

    def record(self, record: Any, trace: Trace) -> None:
        """Count a trace that was read from a record."""
        if self._example is None:
            self._example = record
        self._records += 1
        if trace.time is None and isinstance(record, Mapping):
            self._unread_times += any(record.get(name) is not None for name in _TIMES)
        empty: dict[str, Any] = {"success": None, "task": "", "version": "", "time": None, "outcome": ""}
        self._there.update(option for option in self._named if getattr(trace, option) != empty[option])

    def check(self) -> None:
        """Check all traces at the end.

        Raises:
            MissingFieldError: no trace has a field that the user named.
        """
        for option, path in self._named.items():
            if not self._records and option in OF_ROLLOUTS and path != OF_ROLLOUTS[option]:
                raise TracesError(
                    f"--{option} {path}: skillpress's rollout files always use {OF_ROLLOUTS[option]} for it; "
                    f"leave --{option} out"
                )
            if self._records and not self._there[option]:
                known = list(dict.fromkeys(_paths(self._example)))
                listed = ", ".join(known[:_SHOWN]) + (" ..." if len(known) > _SHOWN else "")
                unread = " as a time that can be read" if option == "time" and path in known else ""
                raise MissingFieldError(
                    option,
                    f"--{option} {path}: none of {self._records:,} traces has it{unread}; the first has "
                    f"{listed}{did_you_mean(path, known)}",
                )

    def doubts(self) -> Iterator[str]:
        """Other warnings, one sentence each."""
        if self._unread_times:
            traces = "1 trace has" if self._unread_times == 1 else f"{self._unread_times:,} traces have"
            yield f"{traces} a time that cannot be read; it counts as unknown"


def _outcome(wanted: Wanted) -> str | None:
    """The path of ``--outcome``; None if only the format or ``--success`` decides."""
    overruled = wanted.success is not None or wanted.judge is not None
    if wanted.paths is None or not wanted.paths.outcome or overruled:
        return None
    return success_field(wanted.paths.outcome[0]).path


def _paths(record: Any, level: int = 0) -> Iterator[str]:
    """The paths of a record to values other than mappings and lists, without its messages and steps."""
    if not isinstance(record, Mapping) or level == _LEVELS:
        return
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from (f"{name}.{inside}" for inside in _paths(value, level + 1))
        elif not isinstance(value, list):
            yield str(name)
