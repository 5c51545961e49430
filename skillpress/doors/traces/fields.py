"""Fields of a record by their path, and what counts as a success.

A path is names joined by dots, ``extra.result.reward``. A name may contain dots itself, and a number is a
position in a list. ``--success`` takes a path alone if the field says yes or no, and ``FIELD>=NUMBER`` or
``FIELD=VALUE`` if it does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skillpress.doors.traces.trace import TracesError

_YES = frozenset(
    [
        "true",
        "yes",
        "1",
        "won",
        "win",
        "pass",
        "passed",
        "success",
        "succeeded",
        "correct",
        "solved",
        "resolved",
    ]
)
_NO = frozenset(
    [
        "false",
        "no",
        "0",
        "lost",
        "loss",
        "fail",
        "failed",
        "failure",
        "error",
        "incorrect",
        "unsolved",
        "unresolved",
    ]
)


def dig(record: Any, path: str) -> Any:
    """The value at a path; None if there is none."""
    if isinstance(record, Mapping):
        if path in record:
            return record[path]
        for end in (match.start() for match in re.finditer(r"\.", path)):
            if path[:end] in record:
                found = dig(record[path[:end]], path[end + 1 :])
                if found is not None:
                    return found
        return None
    if isinstance(record, list):
        name, _, rest = path.partition(".")
        if name.isdecimal() and int(name) < len(record):
            return dig(record[int(name)], rest) if rest else record[int(name)]
    return None


@dataclass(frozen=True)
class SuccessField:
    """The field of a record that says whether it succeeded, and its condition."""

    path: str
    at_least: float | None = None
    equal_to: str | None = None

    def of(self, value: Any) -> bool | None:
        """Whether a field's value is a success; None if there is no value.

        Raises:
            TracesError: the value is neither yes nor no, and no condition says when it is a success.
        """
        if value is None:
            return None
        if self.at_least is not None:
            if isinstance(value, bool | int | float):
                return value >= self.at_least
            raise TracesError(f"--success {self.path}: {value!r:.80} is not a number, so >= does not fit")
        if self.equal_to is not None:
            if str(value).strip().lower() == self.equal_to.lower():
                return True
            wanted = _number(self.equal_to)
            return wanted is not None and wanted == _number(value)
        if isinstance(value, bool | int | float) and value in (0, 1):
            return bool(value)
        if isinstance(value, str) and (word := value.strip().lower()) in _YES | _NO:
            return word in _YES
        raise TracesError(
            f"--success {self.path}: {value!r:.80} says neither yes nor no; "
            f"write {self.path}>=NUMBER or {self.path}=VALUE"
        )


def success_field(text: str) -> SuccessField:
    """The parsed value of ``--success``.

    Raises:
        TracesError: no field is named, or the value after ``>=`` is not a number.
    """
    path, at_least, number = text.partition(">=")
    if at_least:
        try:
            return SuccessField(_named(path, text), at_least=float(number))
        except ValueError:
            raise TracesError(f"--success {text}: {number!r} is not a number") from None
    path, equal, value = text.partition("=")
    return SuccessField(_named(path, text), equal_to=value.strip() if equal else None)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _named(path: str, text: str) -> str:
    if not path.strip():
        raise TracesError(f"--success {text!r}: name a field, such as reward>=1, outcome=won or extra.solved")
    return path.strip()


def seconds(value: Any) -> float | None:
    """A time as a number: a number itself, or an ISO 8601 text. None for anything else, including infinity
    and NaN, which order nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


@dataclass(frozen=True)
class Wanted:
    """The fields that say more about a record; None takes what its format says by itself."""

    success: SuccessField | None = None
    task: str | None = None
    version: str | None = None
    time: str | None = None
