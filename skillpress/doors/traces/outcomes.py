"""Which fields of a log decided the outcomes, and what is odd about them.

A field is the one that the user named, or else the one in which the format keeps the outcome. A score that is
neither 0 nor 1 decides nothing by itself: its range is kept, so that the user can say from where on a trace
succeeded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field


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

    def add(self, success: bool | None, score: float | None) -> None:
        """Count one trace."""
        self.won += success is True
        self.lost += success is False
        self.unknown += success is None
        if score is not None and math.isfinite(score):
            self.scores += success is None
            self.low, self.high = min(self.low, score), max(self.high, score)


@dataclass
class Outcomes:
    """The outcomes of a log, by the field that decided them."""

    fields: dict[str, Decided] = field(default_factory=dict)
    """The empty name has the traces whose record names no such field."""

    def add(self, name: str, success: bool | None, score: float | None) -> None:
        """Count one trace; an empty name for a record that names no field."""
        self.fields.setdefault(name, Decided()).add(success, score)

    def named(self) -> dict[str, Decided]:
        """The fields with a name."""
        return {name: decided for name, decided in self.fields.items() if name}

    def lines(self) -> Iterator[str]:
        """Each field in words, such as ``resolved: 12 won, 30 lost, 2 unknown``."""
        for name, decided in self.named().items():
            unknown = f", {decided.unknown:,} unknown" if decided.unknown else ""
            yield f"{name}: {decided.won:,} won, {decided.lost:,} lost{unknown}"
        without = self.fields.get("", Decided())
        if without.won or without.lost:
            yield f"{without.won:,} won, {without.lost:,} lost"
        if without.unknown:
            yield f"{without.unknown:,} traces name no outcome"

    def doubts(self, option: str = "") -> Iterator[str]:
        """What is odd about them, a sentence each.

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
                    "unknown; "
                    f"--success '{name}>=NUMBER' says from where on a trace succeeded"
                )
