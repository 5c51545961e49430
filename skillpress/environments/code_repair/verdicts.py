"""The judge's results and its input: verdicts of tests, reports of the linter, and the interface that answers
calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Verdict:
    """The result of some tests."""

    passed: int
    failures: tuple[str, ...]
    """A message for each test that failed, in order: the test, and why it failed."""
    timed_out: bool
    """Whether a test ran out of time."""

    @property
    def tests(self) -> int:
        """Number of tests."""
        return self.passed + len(self.failures)

    @property
    def share(self) -> float:
        """Share of the tests that passed."""
        return self.passed / self.tests

    @property
    def perfect(self) -> bool:
        """Whether all tests passed; False if there are no tests."""
        return self.passed > 0 and not self.failures


@dataclass(frozen=True)
class LintReport:
    """A linter's report on a program."""

    syntax: str | None
    """Why it does not parse; None if it parses."""
    problems: int


NOT_PARSED = LintReport("it cannot be parsed", 0)
"""The report on a text that crashed the linter."""


class Answering(Protocol):
    """Answers the calls made by tests: a program in its sandbox, or a layer in front of it."""

    @property
    def timed_out(self) -> bool:
        """Whether a call ran out of time."""

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        """The result of each of these calls, as ``inside/values.py`` writes it; None for None."""
