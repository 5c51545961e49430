"""Rows of tables, such as Hugging Face's: a run in one column, as values or as JSON text.

The column is known by its name (``messages``, ``conversations``, ``trajectory``, ...) or by being the only
one that holds messages. Its value is read as the format that it has, and the row's other columns say the
task and the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from skillpress.environments.calls.steps import unfolded
from skillpress.logs.chat import trace_of, whole_call
from skillpress.logs.conversation import LoggedConversation
from skillpress.logs.outcome import outcome_at
from skillpress.logs.trace import ModelCallPlace, Trace, UnreadableTraceError

COLUMNS = (
    "messages", "conversations", "conversation", "trajectory", "trajectories", "traj", "trace", "traces",
    "history", "chat", "chat_history", "dialogue", "dialog", "turns", "transcript", "events",
    "log", "data", "run", "completion",
)  # fmt: skip
"""Names of columns that hold runs, the plainest first."""

Known = tuple[Callable[[Any], bool], Callable[[Any], Trace]]


def _call(record: Any, trace: Trace) -> ModelCallPlace | None:
    """Where a row belongs in its run, if it is one call; None if its format keeps no messages, or the row
    names no run.
    """
    if trace.dialogue is None or trace.dialogue.shown:
        return None
    return whole_call(record, LoggedConversation(trace.steps, trace.dialogue.turns), True)


class Rows:
    """Reads rows by the formats of their columns."""

    def __init__(self, formats: Sequence[Known]) -> None:
        self._formats = formats

    def recognises(self, record: Any) -> bool:
        """Whether a column of the record holds a run."""
        return self._column(record) is not None

    def read(self, record: Any) -> Trace:
        """The trace in a row.

        Raises:
            UnreadableTraceError: the column's value cannot be read.
        """
        found = self._column(record)
        if found is None:
            raise UnreadableTraceError("no column of the row holds a run")
        value, read = found
        trace = read(value)
        beside = trace_of({key: held for key, held in record.items() if key != "id"}, LoggedConversation())
        ended = outcome_at(record)
        changed: dict[str, Any] = {"call": _call(record, trace)}
        for name in ("name", "task", "version"):
            if not getattr(trace, name):
                changed[name] = getattr(beside, name) or (
                    str(record.get("id") or "")[:200] if name == "name" else ""
                )
        if trace.time is None:
            changed["time"] = beside.time
        if trace.success is None and (ended.outcome or not trace.outcome):
            changed |= ended._asdict()
        return replace(trace, **changed)

    def _column(self, record: Any) -> tuple[Any, Callable[[Any], Trace]] | None:
        """(value, how to read it) of the column that holds a run."""
        if not isinstance(record, dict):
            return None
        for name in COLUMNS:
            if name in record and (found := self._known(record[name])) is not None:
                return found
        others = [
            found for key, held in record.items() if key not in COLUMNS and (found := self._known(held))
        ]
        return others[0] if len(others) == 1 else None

    def _known(self, value: Any) -> tuple[Any, Callable[[Any], Trace]] | None:
        value = unfolded(value)
        if not isinstance(value, list | dict) or not value:
            return None
        return next(((value, read) for recognises, read in self._formats if recognises(value)), None)
