"""Which fields of a log decided the outcomes, which could decide them, and what is odd about them.

A field is the one that the user named, or else the one whose name means success or reward. A score that is
neither 0 nor 1 decides nothing by itself: its range is kept, so that the user can choose the threshold of
success. Other fields are candidates, each shown with the option that selects it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from skillpress.logs.outcome import OutcomeField
from skillpress.logs.score_names import (
    Meaning,
    higher_is_better,
    is_measure,
    lower_is_better,
    meaning,
    says_how_it_ended,
)

CANDIDATES, SHOWN, VALUES = 256, 8, 6
"""Maximum numbers of candidates counted, of candidates shown, and of values in words of one candidate."""


@dataclass
class Decided:
    """The outcomes by one field."""

    won: int = 0
    lost: int = 0
    unknown: int = 0
    """Traces whose field has no value, or one that says neither yes nor no."""
    scores: int = 0
    """Traces whose outcome is unknown because their score is neither 0 nor 1."""
    low: float = math.inf
    """The lowest score of all traces; infinite if none has a score."""
    high: float = -math.inf
    texts: Counter[str] = field(default_factory=Counter)
    """Values in words of a field that says how a run ended."""

    def add(self, success: bool | None, score: float | None, text: str = "") -> None:
        """Count one trace."""
        self.won += success is True
        self.lost += success is False
        self.unknown += success is None
        if score is not None and math.isfinite(score):
            self.scores += success is None
            self.low, self.high = min(self.low, score), max(self.high, score)
        if text and (text in self.texts or len(self.texts) < VALUES):
            self.texts[text] += 1


@dataclass
class Outcomes:
    """The outcomes of a log, by the field that decided them."""

    fields: dict[str, Decided] = field(default_factory=dict)
    """Maps fields to outcomes; the empty name has the traces for which no field decides."""
    others: dict[str, Decided] = field(default_factory=dict)
    """The candidates: fields that say something about a trace and did not decide it."""
    _in_doubt: set[str] = field(default_factory=set)
    """The highest-ranking candidates of traces for which no field decides."""

    def add(
        self, name: str, success: bool | None, score: float | None, others: Sequence[OutcomeField] = ()
    ) -> None:
        """Count one trace; an empty name if no field decides it."""
        self.fields.setdefault(name, Decided()).add(success, score)
        for path, said, number, text in others:
            if path in self.others or len(self.others) < CANDIDATES:
                self.others.setdefault(path, Decided()).add(said, number, text)
        if not name:
            best = max((meaning(other.path) for other in others), default=Meaning.OTHER)
            if best > Meaning.OTHER:
                self._in_doubt.update(other.path for other in others if meaning(other.path) is best)

    def withdraw_disputed(self) -> set[str]:
        """Withdraw fields that cannot be relied on, after all traces were counted; returns these fields.

        If a field decides some traces but in others contradicts a field of the same meaning, it decides none:
        its outcomes become unknown, and it becomes a candidate.
        """
        disputed = self._in_doubt & self.fields.keys()
        for name in disputed:
            decided, other = self.fields.pop(name), self.others.setdefault(name, Decided())
            self.fields.setdefault("", Decided()).unknown += decided.won + decided.lost + decided.unknown
            for count in ("won", "lost", "unknown", "scores"):
                setattr(other, count, getattr(other, count) + getattr(decided, count))
            other.low, other.high = min(other.low, decided.low), max(other.high, decided.high)
        return disputed

    def named(self) -> dict[str, Decided]:
        """The fields with a name."""
        return {name: decided for name, decided in self.fields.items() if name}

    def lines(self) -> Iterator[str]:
        """Each field in words, such as ``resolved: 12 won, 30 lost, 2 unknown``, and the candidates."""
        for name, decided in self.named().items():
            unknown = f", {decided.unknown:,} unknown" if decided.unknown else ""
            yield f"{name}: {decided.won:,} won, {decided.lost:,} lost{unknown}"
        without = self.fields.get("", Decided())
        if without.won or without.lost:
            yield f"{without.won:,} won, {without.lost:,} lost"
        if without.unknown and (self.named() or not self.others):
            yield f"{without.unknown:,} traces name no outcome"
        for told in self._candidates():
            yield f"not taken: {told}"

    def doubts(self, option: str = "") -> Iterator[str]:
        """Warnings about the outcomes, one sentence each.

        Args:
            option: the ``--success`` that the user gave; empty if none.
        """
        for name, decided in self.named().items():
            by, known = f"--success {option}" if option else f"outcome {name}", decided.won + decided.lost
            traces = f"{known:,} traces" if known > 1 else "1 trace"
            if known and not decided.won:
                yield f"{by}: not one of {traces} succeeded by it, so successes and failures are not compared"
            if known and not decided.lost:
                yield f"{by}: all of {traces} succeeded by it, so successes and failures are not compared"
            if decided.scores:
                yield (
                    f"{by}: {decided.scores:,} of {known + decided.unknown:,} scores are neither the number "
                    f"0 nor 1 (they go from {decided.low:g} to {decided.high:g}), so these outcomes are "
                    f"unknown; set the threshold of success with --success '{name}>=NUMBER'"
                )
            if option == name and lower_is_better(name):
                yield f"{by}: its name suggests that lower is better; use {_option(name, decided)} for that"
        listed = list(self._candidates())
        if listed and self.fields.get("", Decided()).unknown:
            yield (
                "it is not certain which field says whether a trace succeeded, so these outcomes are "
                f"unknown; name one of: {'; '.join(listed)}"
            )

    def _candidates(self) -> Iterator[str]:
        """Candidates that distinguish traces or measure something, each with the option that selects it."""
        shown = [
            (name, other)
            for name, other in self.others.items()
            if (other.won and other.lost) or len(other.texts) > 1 or is_measure(name)
        ]
        shown.sort(key=lambda entry: -meaning(entry[0]))
        for name, other in shown[:SHOWN]:
            yield f"{_option(name, other)} ({_found(other)}{_direction(name)})"
        if len(shown) > SHOWN:
            yield f"and {len(shown) - SHOWN:,} others"


def _option(name: str, found: Decided) -> str:
    if found.texts:
        (value, _), *_ = found.texts.most_common(1)
        return f"--success '{name}={value}'"
    if lower_is_better(name):
        return f"--success '{name}<={'NUMBER' if found.scores else 0}'"
    return f"--success '{name}>=NUMBER'" if found.scores else f"--success '{name}'"


def _found(found: Decided) -> str:
    if found.texts:
        return ", ".join(f"{text} {count:,}" for text, count in found.texts.most_common())
    if found.scores:
        return f"from {found.low:g} to {found.high:g}"
    return f"{found.won:,} yes, {found.lost:,} no"


def _direction(name: str) -> str:
    if says_how_it_ended(name):
        return "; how the run ended"
    if lower_is_better(name):
        return "; lower is better"
    return "; higher is better" if higher_is_better(name) else "; its name does not say which is better"
