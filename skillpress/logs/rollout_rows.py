"""Rows of our own ``datasets`` export: one row per decision, and all rows of an episode are one run.

They are read as the rollout file that they came from.
"""

from __future__ import annotations

from typing import Any

from skillpress.environments.calls.steps import acted
from skillpress.logs.fields import dig
from skillpress.logs.rollouts import own_trace
from skillpress.logs.trace import Trace

_OURS = {
    "group_id",
    "rollout_index",
    "policy",
    "policy_version",
    "won",
    "decision",
    "summary",
    "action",
    "invalid",
}


def run_of(record: Any) -> str | None:
    """The episode of a row; None if the record is not such a row."""
    if not isinstance(record, dict) or not record.keys() >= _OURS:
        return None
    return f"{record['policy_version']}/{record['run']}/{record['group_id']}/{record['rollout_index']}"


def read(record: Any) -> Trace:
    """The trace of an episode."""
    steps = (
        step
        for row in sorted(record, key=lambda row: row["decision"])
        if not row["summary"]
        for step in acted(row["action"], row["observation"], row["invalid"] is not None)
    )
    return own_trace(record[0], steps)


def field(record: Any, path: str) -> Any:
    """The value at a path of the first row."""
    return dig(record[0], path)
