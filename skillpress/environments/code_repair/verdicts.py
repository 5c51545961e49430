"""What judging gives, and what it asks: verdicts of tests, reports of the linter, and who answers calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Verdict:
    """What came of some tests."""

    passed: int
    failures: tuple[str, ...]
    """Of each test that failed, in order: what it says, and why it failed."""
    timed_out: bool
    """Whether a test ran out of time."""

    @property
    def tests(self) -> int:
        """How many there are."""
        return self.passed + len(self.failures)

    @property
    def share(self) -> float:
        """Of the tests, those passed."""
        return self.passed / self.tests

    @property
    def perfect(self) -> bool:
        """Whether all tests passed; none would be no pass."""
        return self.passed > 0 and not self.failures


@dataclass(frozen=True)
class LintReport:
    """What a linter says of a program."""

    syntax: str | None
    """Why it does not parse; None where it does."""
    problems: int


NOT_PARSED = LintReport("it cannot be parsed", 0)
"""The report on a text that ended the linter itself."""


class Answering(Protocol):
    """Answers the calls that tests make: a program in its sandbox, or something in front of it."""

    @property
    def timed_out(self) -> bool:
        """Whether a call ran out of time."""

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """What each of these calls returns, as ``inside/values.py`` writes it; None for None."""
