"""Which episodes to show, and in which order: translates an address's parameters to rows of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import polars as pl

from skillpress.core.errors import UserError

MOST = 500
"""One page shows at most this many episodes."""
LONGEST_TEXT = 1000
"""A search text has at most this many characters."""
TEXTS = ("task", "group", "policy", "split", "stratum", "outcome", "reason")
"""Columns that are filtered by equality; an empty value also matches null."""
NUMBERS = ("source", "version", "run")
"""Whole-number columns that are filtered by equality."""
RANGES = ("steps", "invalid", "reward", "cost", "version", "advantage")
"""Columns that ``min_`` and ``max_`` bound, both inclusive; null never matches."""
SORTS = (
    "source", "task", "group", "policy", "run", "rollout", "version", "split", "stratum", "won", "outcome",
    "steps", "invalid", "reason", "reward", "cost", "advantage",
)  # fmt: skip


class QueryError(UserError):
    """The address asks for something that does not exist; the message names the parameter."""


@dataclass(frozen=True, kw_only=True)
class EpisodeQuery:
    """All filters must hold. A filter with several values holds if any of them matches."""

    equal: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    won: bool | None = None
    phrases: tuple[int, ...] = ()
    """Episodes whose cut has any of these phrases."""
    text: str | None = None
    """The search text in lower case."""
    sort: str | None = None
    """The column to sort by; None keeps the order of the files."""
    descending: bool = False
    offset: int = 0
    limit: int = 50

    @property
    def needs_skills(self) -> bool:
        """Whether the query depends on the cuts of episodes."""
        return bool(self.phrases) or "cost" in {self.sort, *self.least, *self.most}

    @property
    def condition(self) -> pl.Expr:
        """The condition of the filters that the index alone can answer."""
        holds = pl.lit(True)
        for name, values in self.equal.items():
            column = pl.col(name).fill_null("") if name in TEXTS else pl.col(name)
            holds &= column.is_in(list(values))
        for name, least in self.least.items():
            holds &= pl.col(name) >= least
        for name, most in self.most.items():
            holds &= pl.col(name) <= most
        return holds if self.won is None else holds & (pl.col("won") == self.won)

    def ordered(self, episodes: pl.DataFrame) -> pl.DataFrame:
        """Episodes in the requested order: nulls last, ties in the order of the files."""
        if self.sort is None:
            return episodes
        return episodes.sort(self.sort, descending=self.descending, nulls_last=True, maintain_order=True)


def parse(parameters: Iterable[tuple[str, str]]) -> EpisodeQuery:
    """The query in the parameters of an address, in their order.

    Raises:
        QueryError: a parameter is unknown, given twice, or has a wrong value.
    """
    equal: dict[str, tuple[Any, ...]] = {}
    found: dict[str, Any] = {"equal": equal, "least": {}, "most": {}}
    seen: set[str] = set()
    for name, value in parameters:
        bound, _, column = name.partition("_")
        if name in TEXTS:
            equal[name] = (*equal.get(name, ()), value)
        elif name in NUMBERS:
            equal[name] = (*equal.get(name, ()), _whole(name, value))
        elif name == "phrase":
            found["phrases"] = (*found.get("phrases", ()), _whole(name, value))
        elif name in seen:
            raise QueryError(f"{name}: is given twice; give it once")
        elif bound in ("min", "max") and column in RANGES:
            found["least" if bound == "min" else "most"][column] = _number(name, value)
        elif name in _SINGLE:
            key, read = _SINGLE[name]
            found[key] = read(name, value)
        else:
            raise QueryError(f"{name}: no such parameter; there are {', '.join(PARAMETERS)}")
        seen.add(name)
    return EpisodeQuery(**found)


def _whole(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise QueryError(f"{name}: {value[:40]!r} is not a whole number from 0 on")
    return int(value)


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise QueryError(f"{name}: {value[:40]!r} is not a number")
    return number


def _flag(name: str, value: str) -> bool:
    if value not in ("0", "1"):
        raise QueryError(f"{name}: {value[:40]!r} is neither 0 nor 1")
    return value == "1"


def _limit(name: str, value: str) -> int:
    number = _whole(name, value)
    if not 1 <= number <= MOST:
        raise QueryError(f"{name}: {number} is not from 1 to {MOST}")
    return number


def _column(name: str, value: str) -> str:
    if value not in SORTS:
        raise QueryError(f"{name}: {value[:40]!r} is not one of {', '.join(SORTS)}")
    return value


def _text(name: str, value: str) -> str | None:
    if len(value) > LONGEST_TEXT:
        raise QueryError(f"{name}: {len(value):,} characters are more than {LONGEST_TEXT:,}")
    return value.lower() or None


_SINGLE: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "won": ("won", _flag),
    "text": ("text", _text),
    "sort": ("sort", _column),
    "descending": ("descending", _flag),
    "offset": ("offset", _whole),
    "limit": ("limit", _limit),
}
PARAMETERS = (
    *TEXTS, *NUMBERS, *(f"{bound}_{name}" for bound in ("min", "max") for name in RANGES), "phrase", *_SINGLE,
)  # fmt: skip
