"""Fields of a record by their path, and what counts as a success.

A path is names joined by dots, ``extra.result.reward``. A name may contain dots itself, a number is a
position in a list, and in a list of scores a score's name selects that score. ``--success`` accepts a path
alone if the field says yes or no, and ``FIELD>=NUMBER``, ``FIELD<=NUMBER`` or ``FIELD=VALUE`` if it does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from skillpress.environments.calls.steps import unfolded
from skillpress.logs.call_pattern import CallPattern
from skillpress.logs.trace import Trace, TracesError

if TYPE_CHECKING:
    from skillpress.logs.outcomes import Decided
    from skillpress.logs.read_by_paths import Paths

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
    """The value at a path; None if there is none. Tables keep mappings and lists as JSON text."""
    record = unfolded(record)
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
        return next((item_value(item) for item in record if _named_item(item) == path), None)
    return None


ITEM_NAMES = ("name", "key", "metric", "metric_name", "assessment_name", "scorer", "evaluator")
"""Where the items of a list of scores keep their names."""
_ITEM_VALUES = (
    "value",
    "stringValue",
    "string_value",
    "score",
    "result",
    "label",
    "passed",
    "success",
    "pass",
)


def item_value(item: Any) -> Any:
    """The value of an item in a list of scores; None if it has none."""
    return either(item, *_ITEM_VALUES)


def _named_item(item: Any) -> Any:
    return next((item[key] for key in ITEM_NAMES if key in item), None) if isinstance(item, Mapping) else None


def either(held: Any, *names: str) -> Any:
    """The value of the first of these names that ``held`` has; None if it has none or is not a mapping."""
    if not isinstance(held, Mapping):
        return None
    for name in names:  # a plain loop, since this is the most frequent work of reading a log
        if (value := held.get(name)) is not None:
            return value
    return None


def dig_lines(lines: Sequence[Any], path: str) -> Any:
    """The value at a path of the first line that has it; None if there is none."""
    return next((value for line in lines if (value := dig(line, path)) is not None), None)


@dataclass(frozen=True)
class SuccessField:
    """The field of a record that says whether it succeeded, and its condition."""

    path: str
    at_least: float | None = None
    at_most: float | None = None
    equal_to: str | None = None

    def of(self, value: Any) -> bool | None:
        """Whether a field's value is a success; None if there is no value, or if it is not a number (NaN).

        Raises:
            TracesError: the value is neither yes nor no, and no condition says when it is a success.
        """
        if self.equal_to is not None and str(value).strip().lower() == self.equal_to.lower():
            return True
        if is_unknown(value):
            return None
        if self.at_least is not None or self.at_most is not None:
            found = number(value)
            if found is None and (found := yes_or_no(value)) is None:
                raise TracesError(
                    f"--success {self.path}: {value!r:.80} is not a number, so {self._sign} does not fit"
                )
            return found <= self.at_most if self.at_most is not None else found >= (self.at_least or 0.0)
        if self.equal_to is not None:
            wanted = number(self.equal_to)
            return wanted is not None and wanted == number(value)
        said = yes_or_no(value)
        if said is None:
            raise TracesError(
                f"--success {self.path}: {value!r:.80} says neither yes nor no; "
                f"write {self.path}>=NUMBER, {self.path}<=NUMBER or {self.path}=VALUE"
            )
        return said

    @property
    def text(self) -> str:
        """The option as the user would write it."""
        if (limit := self.at_most if self.at_least is None else self.at_least) is not None:
            return f"{self.path}{self._sign}{limit:g}"
        return self.path if self.equal_to is None else f"{self.path}={self.equal_to}"

    @property
    def _sign(self) -> str:
        return ">=" if self.at_most is None else "<="


def success_field(text: str) -> SuccessField:
    """The parsed value of ``--success``.

    Raises:
        TracesError: no field is named, or the value after ``>=`` or ``<=`` is not a number.
    """
    for sign in (">=", "<="):
        path, found, number = text.partition(sign)
        if found:
            try:
                limit = float(number)
            except ValueError:
                raise TracesError(f"--success {text}: {number!r} is not a number") from None
            path = _named(path, text)
            return SuccessField(path, limit) if sign == ">=" else SuccessField(path, at_most=limit)
    path, equal, value = text.partition("=")
    return SuccessField(_named(path, text), equal_to=value.strip() if equal else None)


def is_unknown(value: Any) -> bool:
    """Whether a value says nothing: null, an empty text or NaN, also as a text."""
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan")
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any) -> float | None:
    """A value as a number: a number itself, a yes or no, or a text of a number; None for anything else."""
    if isinstance(value, bool | int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def yes_or_no(value: Any) -> bool | None:
    """What a value says by itself: true, false, 1 and 0 in any type, or a word such as ``passed``."""
    if isinstance(value, str) and (word := value.strip().lower()) in _YES | _NO:
        return word in _YES
    found = number(value)
    return bool(found) if found in (0, 1) else None


def _named(path: str, text: str) -> str:
    if not path.strip():
        raise TracesError(f"--success {text!r}: name a field, such as reward>=1, outcome=won or extra.solved")
    return path.strip()


def seconds(value: Any) -> float | None:
    """A time as a number: a number itself, also written as a text, or a date as ISO 8601, RFC 2822 or a table
    writes it (without a zone: UTC). None for anything else, including infinity and NaN."""
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    except ValueError:
        found = math.nan
        for read in (datetime.fromisoformat, _from_table, parsedate_to_datetime):
            try:
                return _timestamp(read(str(value).strip()))
            except (ValueError, TypeError, IndexError):
                continue
    return found if math.isfinite(found) else None


def first_time(values: Iterable[Any]) -> float | None:
    """The first value that is a time, as a number."""
    return next((time for value in values if (time := seconds(value)) is not None), None)


def _from_table(text: str) -> datetime:
    return datetime.fromisoformat(re.sub(r"\s*(UTC|GMT|Z)$", "+00:00", text.replace("/", "-")))


def _timestamp(moment: datetime) -> float | None:
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError:
        return None


class SuccessRule(Protocol):
    """Says which traces succeeded: a file of labels, or a rule over their steps."""

    @property
    def name(self) -> str:
        """What decided the outcomes."""

    def __call__(self, trace: Trace, value_at: Callable[[str], Any], /) -> bool | None:
        """Whether a trace succeeded; None if unknown.

        Args:
            value_at: the value of a field of the trace's record.
        """

    def doubts(self, decided: Decided, /) -> Iterator[str]:
        """Warnings about the outcomes of a log, one sentence each."""

    def unused(self) -> Iterator[str]:
        """Warnings about parts that belong to no trace of any log, one sentence each."""


@dataclass(frozen=True)
class Wanted:
    """The user's options about the records; for None, the record's format decides."""

    success: SuccessField | None = None
    task: str | None = None
    version: str | None = None
    time: str | None = None
    call: CallPattern | None = None
    """The form of calls in text; None if the format itself finds all calls."""
    paths: Paths | None = None
    """Where the runs and their messages are; None for logs of the formats that are known."""
    judge: SuccessRule | None = None
    """Decides which traces succeeded, in place of a field of their records."""
