"""Outcomes by a rule over the last call: "the last test command passed".

    --last-call tests                          the last command that runs tests, by what it printed
    --last-call 'pytest -> [1-9]\\d* passed'     the last call with ``pytest``, by its answer

The two sides are regular expressions. The left one is searched in the tool's name and what it was called
with, the right one in the answer. A call that the log marks as failed, such as by an exit code, is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from skillpress.environments.calls.steps import TraceStep, action_of, text_of
from skillpress.logs.outcomes import Decided
from skillpress.logs.trace import Trace, TracesError

TESTS = "tests"
_COMMANDS = re.compile(
    r"\b(?:pytest|py\.test|unittest|tox|nox|nosetests|jest|vitest|mocha|rspec|phpunit|ctest|runtests|run_tests?)\b"
    r"|\b(?:go|cargo|dotnet|bazel|swift|deno|bun|mix|sbt|flutter|npm|yarn|pnpm|manage\.py|make)\s+(?:run\s+)?"
    r"(?:test|check)"
    r"|\b(?:mvn|mvnw|gradle|gradlew)\b.*\b(?:test|check|verify)\b|^tests?\b",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\b[1-9]\d*\s+(?:tests?\s+)?(?:failed|failing|failures?|errors?)\b|\b(?:failures?|errors?|failed)[:=]\s*[1-9]"
    r"|\bFAIL(?:ED|URES?)?\b|^Traceback |\bexit(?:ed with)?[ _]?(?:code|status)?[:=\s]+[1-9]\d*\b"
    r"|<returncode>\s*[1-9]|command not found|no tests ran|\bBUILD FAIL",
    re.MULTILINE,
)
_PASSED = re.compile(
    r"\b[1-9]\d*\s+(?:tests?\s+)?(?:passed|passing|ok)\b|^OK\b|test result: ok|^ok\s|\bPASS(?:ED)?\b"
    r"|\bBUILD SUCCESS|all tests pass|\bexit(?:ed with)?[ _]?(?:code|status)?[:=\s]+0\b|<returncode>\s*0\b",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True)
class LastCall:
    """A rule over the last call that an expression finds."""

    rule: str
    finds: re.Pattern[str]
    passed: re.Pattern[str]
    failed: re.Pattern[str] | None = None
    """A pattern in the answer to a failed call; if None, every answer without ``passed`` means failure."""

    @property
    def name(self) -> str:
        """What decided the outcomes."""
        return f"last call, {self.rule}"

    def __call__(self, trace: Trace, value_at: Callable[[str], Any]) -> bool | None:
        """Whether the last such call of a trace succeeded; None without such a call, or if its answer does
        not say."""
        step = next((step for step in reversed(trace.steps) if self.finds.search(_called(step))), None)
        if step is None:
            return None
        answer = text_of(step.answer)
        if step.refused:
            return False
        if not answer.strip():
            return None
        if self.failed is None:
            return self.passed.search(answer) is not None
        if self.failed.search(answer):
            return False
        return True if self.passed.search(answer) else None

    def doubts(self, decided: Decided) -> Iterator[str]:
        """A sentence that counts the traces for which the rule decides nothing."""
        if decided.unknown:
            total = decided.won + decided.lost + decided.unknown
            yield (
                f"--last-call {self.rule}: {decided.unknown:,} of {total:,} traces have no such call, or its "
                "answer does not say; their outcomes are unknown"
            )

    def unused(self) -> Iterator[str]:
        """Empty: a rule has no parts that could belong to no trace."""
        return iter(())


def last_call(text: str) -> LastCall:
    """The parsed value of ``--last-call``.

    Raises:
        TracesError: it is neither ``tests`` nor two regular expressions.
    """
    if text.strip() == TESTS:
        return LastCall(TESTS, finds=_COMMANDS, passed=_PASSED, failed=_FAILED)
    finds, arrow, passed = (part.strip() for part in text.partition("->"))
    if not arrow or not finds or not passed:
        raise TracesError(
            f"--last-call {text}: not a rule; write {TESTS}, or two regular expressions, for the call and "
            f"for a successful answer, such as 'pytest -> [1-9]\\d* passed'"
        )
    return LastCall(text, finds=_pattern(finds, text), passed=_pattern(passed, text))


def _called(step: TraceStep) -> str:
    return action_of(step) if step.tool is None else f"{step.tool} {action_of(step)}"


def _pattern(pattern: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise TracesError(f"--last-call {text}: {pattern!r} is not a regular expression: {error}") from error
