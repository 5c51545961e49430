"""Refuse a field that the user named if no trace has it, since every trace would silently lack it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.core.errors import did_you_mean
from skillpress.doors.traces.fields import Wanted
from skillpress.doors.traces.trace import Trace, TracesError

OF_ROLLOUTS = {"success": "won", "task": "task_id", "version": "policy", "time": "policy_version"}
"""The fields of our own rollout files that answer each option, whatever field the user names."""
_LEVELS, _SHOWN = 4, 12


class NamedFields:
    """Which of the fields that the user named occurred in the traces so far."""

    def __init__(self, wanted: Wanted) -> None:
        success = wanted.success
        every = {
            "success": None if success is None else success.path,
            "task": wanted.task,
            "version": wanted.version,
            "time": wanted.time,
        }
        self._named = {option: path for option, path in every.items() if path is not None}
        self._wanted, self._there = wanted, Counter[str]()
        self._example: Any = None
        self._rollouts = self._records = self._won = 0

    def rollout(self) -> None:
        """Count a trace of one of our own rollout files."""
        self._rollouts += 1

    def record(self, record: Any, trace: Trace) -> None:
        """Count a trace that was read from a record."""
        if self._example is None:
            self._example = record
        self._records += 1
        self._won += bool(trace.success)
        empty: dict[str, Any] = {"success": None, "task": "", "version": "", "time": None}
        self._there.update(option for option in self._named if getattr(trace, option) != empty[option])

    def check(self) -> None:
        """Check all traces at the end.

        Raises:
            TracesError: no trace has a field that the user named.
        """
        for option, path in self._named.items():
            if not self._records and path != OF_ROLLOUTS[option]:
                raise TracesError(
                    f"--{option} {path}: our own rollout files take it from {OF_ROLLOUTS[option]}; leave "
                    f"--{option} out"
                )
            if self._records and not self._there[option]:
                known = list(dict.fromkeys(_paths(self._example)))
                listed = ", ".join(known[:_SHOWN]) + (" ..." if len(known) > _SHOWN else "")
                unread = " as a time that can be read" if option == "time" and path in known else ""
                raise TracesError(
                    f"--{option} {path}: none of {self._records:,} traces has it{unread}; the first has "
                    f"{listed}{did_you_mean(path, known)}"
                )

    def doubt(self) -> str | None:
        """A warning if no trace succeeded by the named field although each of them has a value there."""
        success = self._wanted.success
        if success is None or not self._there["success"] or self._won:
            return None
        rule = f">={success.at_least:g}" if success.at_least is not None else ""
        rule = rule or (f"={success.equal_to}" if success.equal_to is not None else "")
        return f"--success {success.path}{rule}: not one of {self._there['success']:,} traces succeeded by it"


def _paths(record: Any, level: int = 0) -> Iterator[str]:
    """The paths of a record to values other than mappings and lists, without its messages and steps."""
    if not isinstance(record, Mapping) or level == _LEVELS:
        return
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from (f"{name}.{inside}" for inside in _paths(value, level + 1))
        elif not isinstance(value, list):
            yield str(name)
