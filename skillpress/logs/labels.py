"""Outcomes from elsewhere: a file of labels, ``id`` and ``success``, in CSV, JSON lines, JSON or Parquet.

``id`` is what the log calls a trace, or its task. A column of another name is the field of the record to
compare with: ``instance_id,success``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpress.core.errors import did_you_mean
from skillpress.logs.fields import is_unknown, yes_or_no
from skillpress.logs.files import HEAD, values
from skillpress.logs.outcomes import Decided
from skillpress.logs.trace import Trace, TracesError, UnreadableTraceError, whole_text

ID, SUCCESS = "id", "success"
NAMED = 3
"""Maximum number of ids that a message names."""


@dataclass
class Labels:
    """The labels of a file, and the ids that traces had so far."""

    path: Path
    column: str
    """``id``, or the field of a record that holds the id."""
    success: Mapping[str, bool | None]
    """Maps ids to labels; None for a label that the file leaves empty."""
    used: set[str] = field(default_factory=set)
    """The ids that belong to a trace."""
    first: str = ""
    """The first trace's own name, for messages."""

    @property
    def name(self) -> str:
        """What decided the outcomes."""
        return f"{self.path.name}: {SUCCESS}"

    def __call__(self, trace: Trace, value_at: Callable[[str], Any]) -> bool | None:
        """The label of a trace; None if it has none.

        Args:
            value_at: the value of a field of the trace's record.
        """
        names = [value_at(self.column)] if self.column != ID else [trace.name, value_at(ID), trace.task]
        texts = [str(name) for name in names if name not in (None, "")]
        self.first = self.first or next(iter(texts), "")
        found = next((text for text in texts if text in self.success), None)
        if found is None:
            return None
        self.used.add(found)
        return self.success[found]

    def doubts(self, decided: Decided) -> Iterator[str]:
        """Warnings about the labels of one log, one sentence each."""
        labelled = decided.won + decided.lost
        if decided.unknown:
            yield (
                f"--outcomes {self.path}: {decided.unknown:,} of {labelled + decided.unknown:,} traces have "
                "no label; their outcomes are unknown"
            )
        labels = sum(self.success[name] is not None for name in self.used)
        if labelled > labels:
            yield (
                f"--outcomes {self.path}: {labelled:,} traces share {labels:,} labels: traces with the same "
                f"{self.column} get the same label"
            )

    def unused(self) -> Iterator[str]:
        """The ids that no trace has, in a sentence.

        Raises:
            TracesError: no id belongs to a trace.
        """
        unknown = [name for name in self.success if name not in self.used]
        shown = ", ".join(map(repr, unknown[:NAMED])) + (" ..." if len(unknown) > NAMED else "")
        if unknown and len(unknown) == len(self.success):
            raise TracesError(
                f"--outcomes {self.path}: none of its {len(unknown):,} ids ({shown}) is in the log, whose "
                f"first trace has {self.first!r}; name the column of ids after the field of a record that "
                "holds them"
            )
        if unknown:
            count = f"{len(unknown):,} of {len(self.success):,} ids"
            yield f"--outcomes {self.path}: {count} belong to no trace ({shown})"


def read_labels(path: Path) -> Labels:
    """The labels of a file.

    Raises:
        TracesError: it cannot be read, has no ids or no ``success``, or a label says neither yes nor no.
    """
    if not path.is_file():
        raise TracesError(f"--outcomes {path}: no such file; name a file with the columns {ID} and {SUCCESS}")
    success, rows = dict[str, bool | None](), list(_rows(path))
    column = _id_column(rows, f"--outcomes {path}") if rows else ID
    for number, row in rows:
        place = f"--outcomes {path}, line {number}"
        if is_unknown(row.get(column)):
            raise TracesError(f"{place}: {column} is missing; every line needs it")
        name, label = str(row[column]), row.get(SUCCESS)  # a table leaves empty labels out
        said = None if is_unknown(label) else yes_or_no(label)
        if said is None and not is_unknown(label):
            raise TracesError(
                f"{place}: {SUCCESS}: {label!r:.60} says neither yes nor no; write true or false, or 1 or 0"
            )
        if success.get(name, said) is not said:
            raise TracesError(f"{place}: {column} {name!r} has two different labels; keep one line")
        success[name] = said
    if not success:
        raise TracesError(f"--outcomes {path}: contains no labels; every line needs {ID} and {SUCCESS}")
    return Labels(path, column, success=success)


def _id_column(rows: Sequence[tuple[int, Mapping[str, Any]]], place: str) -> str:
    columns = list(dict.fromkeys(str(name) for _, row in rows for name in row))
    others = [name for name in columns if name != SUCCESS]
    if SUCCESS not in columns or not (ID in columns or len(others) == 1):
        missing = ID if SUCCESS in columns else SUCCESS
        raise TracesError(
            f"{place}: column {missing} is missing; its columns are {', '.join(columns)[:200] or 'none'}"
            f"{did_you_mean(missing, others)}; it needs {ID} (or one field of a record) and {SUCCESS}"
        )
    return ID if ID in columns else others[0]


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line, columns by name) of each label."""
    with path.open("rb") as file:
        head = file.read(HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"{", b"[") and not head.startswith((b"PAR1", b"ARROW1", b"\x1f\x8b")):
        yield from _of_csv(path)
        return
    for value in values(path):
        if isinstance(value.value, UnreadableTraceError):
            raise TracesError(f"--outcomes {path}, line {value.number}: {value.value}")
        for item, row in enumerate(_listed(value.value)):
            if not isinstance(row, Mapping):
                raise TracesError(
                    f"--outcomes {path}, line {value.number}: {row!r:.60} is not an object with {ID} and "
                    f"{SUCCESS}"
                )
            yield value.number + item, row


def _listed(value: Any) -> list[Any]:
    """The labels of a JSON value: a list of objects, one of them, or an object of ids to labels."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping) or {ID, SUCCESS} & value.keys():
        return [value]
    labels = all(is_unknown(label) or yes_or_no(label) is not None for label in value.values())
    return [{ID: name, SUCCESS: label} for name, label in value.items()] if labels else [value]


def _of_csv(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        lines = whole_text(path.read_bytes()).splitlines()
    except UnicodeDecodeError as error:
        raise TracesError(f"--outcomes {path}: neither text in UTF-8 ({error.reason}) nor a table") from None
    first = next(iter(lines), "")
    mark = max(",\t;", key=first.count)
    for number, row in enumerate(csv.DictReader(lines, delimiter=mark, restval=""), 2):
        yield number, {str(name).strip(): held for name, held in row.items() if name is not None}
