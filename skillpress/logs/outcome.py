"""How a run ended, where the log's own format says so.

A field decides only if its name means success or reward (``score_names.py``) and if it says yes or no: true,
1, 0.0, "resolved". Any other number is kept as the score and leaves the success unknown, because only the
log's owner knows how much is enough (``--success``). All other scores of a record are candidates: the user
may choose one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from skillpress.environments.calls.steps import unfolded
from skillpress.logs.fields import ITEM_NAMES, dig, item_value, yes_or_no
from skillpress.logs.score_names import (
    Meaning,
    is_measure,
    is_setting,
    may_hold,
    meaning,
    says_how_it_ended,
)

_WHOLE = ("reward", "score", "total", "value", "resolved", "overall", "avg", "mean")
"""Names under which a score holds its total value, the plainest first."""
DEEPEST, MOST, LONGEST_TEXT = 3, 64, 40


class OutcomeField(NamedTuple):
    """A field that says something about a run."""

    path: str
    success: bool | None
    """None if it says neither yes nor no."""
    score: float | None
    text: str = ""
    """The value of a field that says in words how the run ended."""


class FoundOutcome(NamedTuple):
    """An outcome and where it was found, by the names of ``Trace``'s fields."""

    outcome: str = ""
    success: bool | None = None
    score: float | None = None
    candidates: tuple[OutcomeField, ...] = ()
    """Other fields that could say whether the run succeeded; all fields if none decides by itself."""


def outcome_at(record: Any, own: Sequence[str] = ()) -> FoundOutcome:
    """The outcome of a record.

    Args:
        own: the paths where the record's format keeps the outcome. The first that says anything decides.
    """
    others = tuple(_fields(record))
    for path in own:
        if (value := dig(record, path)) is not None:
            found = outcome_of(path, value)
            if found.success is not None or found.score is not None:
                return found._replace(candidates=tuple(each for each in others if each.path != found.outcome))
    return decided(others)


def outcome_of(path: str, value: Any) -> FoundOutcome:
    """The outcome in the value of a field that is known to hold it. Of a mapping, the entry that is called
    reward, score, total or the like decides."""
    if isinstance(value, Mapping):
        names = [name for name in _WHOLE if name in value]
        return outcome_of(f"{path}.{names[0]}", value[names[0]]) if names else FoundOutcome()
    success, score = said_by(value)
    return FoundOutcome(path, success, score)


def decided(candidates: Iterable[OutcomeField]) -> FoundOutcome:
    """The outcome by the candidate whose name means success; else by reward, else by the only candidate. If
    two names of the same meaning disagree, they decide nothing.
    """
    every = tuple(candidates)
    best = max((meaning(each.path) for each in every), default=Meaning.OTHER)
    named = [each for each in every if meaning(each.path) is best]
    measured = sum(is_measure(each.path) for each in every)
    if best is Meaning.OTHER or (best is Meaning.ALONE and measured > 1):
        return FoundOutcome(candidates=every)
    first, *others = named
    if any((each.success, each.score) != (first.success, first.score) for each in others):
        return FoundOutcome(candidates=every)
    return FoundOutcome(
        first.path, first.success, first.score, tuple(each for each in every if each is not first)
    )


def candidates_of(values: Iterable[tuple[str, Any]]) -> Iterator[OutcomeField]:
    """The candidates among scores, given as (path, value)."""
    for path, value in values:
        yield from _inside(path, value, DEEPEST)


def said_by(value: Any) -> tuple[bool | None, float | None]:
    """(yes or no, number) of a value; None for each that it does not state."""
    if isinstance(value, bool):
        return value, float(value)
    return yes_or_no(value), _number(value)


def _fields(record: Any) -> Iterator[OutcomeField]:
    """The candidates among the fields of a record: those whose name says that something is measured, and
    those that say yes or no."""
    if not isinstance(record, Mapping):
        return
    number = 0
    for name, held in record.items():
        value = unfolded(held) if isinstance(name, str) and may_hold(name) else held
        if (
            not isinstance(name, str)
            or value is None
            or (isinstance(value, str) and len(value) > LONGEST_TEXT)
        ):
            continue
        for found in _inside(name, value, DEEPEST if may_hold(name) else 1):
            number += 1
            if number > MOST:
                return
            yield found


def _inside(path: str, value: Any, depth: int) -> Iterator[OutcomeField]:
    """The candidates in a field's value: itself, the entries of a mapping, or the named items of a list."""
    if isinstance(value, dict):
        if not depth:
            return
        whole = next(
            (name for name in _WHOLE if name in value and not isinstance(value[name], dict | list)), ""
        )
        if whole:
            yield from _inside(f"{path}.{whole}", value[whole], depth - 1)
        elif depth > 1:
            for name, held in list(value.items())[:MOST]:
                yield from _inside(f"{path}.{name}", held, depth - 1)
    elif isinstance(value, list):
        for item in value[:MOST]:
            if isinstance(item, dict) and isinstance(
                name := next((item[key] for key in ITEM_NAMES if key in item), None), str
            ):
                yield from _inside(f"{path}.{name}", item_value(item), 0)
    elif (found := _candidate(path, value)) is not None:
        yield found


def _candidate(path: str, value: Any) -> OutcomeField | None:
    success, score = said_by(value)
    name = path.rpartition(".")[2]
    if says_how_it_ended(path):
        is_text = isinstance(value, str) and 0 < len(value.strip()) <= LONGEST_TEXT
        return OutcomeField(path, None, None, value.strip()) if is_text else None
    if name == "target" and not isinstance(value, bool):  # inspect and others call the right answer so
        return None
    if success is None and (score is None or not is_measure(path)):
        return None
    if not is_measure(path) and (is_setting(name) or isinstance(value, float)):
        return None
    return OutcomeField(path, success, score)


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
