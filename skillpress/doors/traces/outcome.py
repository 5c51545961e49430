"""How a run ended, where the log's own format says so.

A field decides if it says yes or no: true, 1, 0.0, "resolved", inspect's "C". Any other number is kept as the
score and leaves the success unknown, because only the log's owner knows how much is enough (``--success``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from skillpress.doors.traces.fields import SuccessField, dig
from skillpress.doors.traces.trace import TracesError

USUAL = ("resolved", "success", "reward", "rewards", "score", "scores", "is_correct", "exit_status")
"""Fields of a record that hold its outcome, the plainest first."""


class Outcome(NamedTuple):
    """An outcome and where it was found, by the names of ``Trace``'s fields."""

    outcome: str = ""
    success: bool | None = None
    score: float | None = None


def outcome_at(record: Any, paths: Sequence[str] = USUAL) -> Outcome:
    """The outcome at the first of some paths whose value says anything."""
    for path in paths:
        if (value := dig(record, path)) is not None:
            found = outcome_of(path, value)
            if found.success is not None or found.score is not None:
                return found
    return Outcome()


def outcome_of(path: str, value: Any) -> Outcome:
    """The outcome in a field's value. Of a mapping with one entry, the entry decides, and of several the one
    that is called reward, score or total, or ``value``."""
    if isinstance(value, dict):
        names = [name for name in ("reward", "score", "total", "value", "resolved") if name in value]
        names = names or (list(value) if len(value) == 1 else [])
        return outcome_of(f"{path}.{names[0]}", value[names[0]]) if names else Outcome()
    if isinstance(value, str) and path.rpartition(".")[2] == "exit_status":
        return Outcome(path, value.strip().lower() == "submitted" if value.strip() else None)
    if isinstance(value, bool):
        return Outcome(path, value, float(value))
    score = _number(value)
    try:
        success = SuccessField(path).of(value if score is None or isinstance(value, str) else score)
    except TracesError:
        success = None
    return Outcome(path, success, score)


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
