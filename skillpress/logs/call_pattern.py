"""Calls written in an agent's text, found by a regular expression of the user.

    --call 'Action: (?P<tool>\\w+)\\nAction Input: (?P<arguments>.*)'

Every match in a step in words is a call, in order; the text around it is dropped. The group ``tool`` is the
tool's name, and the group ``arguments`` what it was called with: JSON, or a text. A step without a match
stays in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from skillpress.environments.calls.steps import TraceStep, action_of
from skillpress.logs.trace import Trace, TracesError


@dataclass(frozen=True)
class CallPattern:
    """The form of calls in text."""

    pattern: re.Pattern[str]

    def read(self, trace: Trace) -> Trace:
        """The trace with the calls in its words as steps of their own."""
        earlier = trace.call.earlier if trace.call is not None else 0
        before, own = (tuple(self._steps(part)) for part in (trace.steps[:earlier], trace.steps[earlier:]))
        call = None if trace.call is None else replace(trace.call, earlier=len(before))
        return replace(trace, steps=before + own, call=call)

    def _steps(self, steps: Sequence[TraceStep]) -> Iterator[TraceStep]:
        for step in steps:
            found = list(self.pattern.finditer(action_of(step))) if step.tool is None else []
            for number, match in enumerate(found, 1):
                named = match.groupdict()
                arguments = named.get("arguments")
                answer = step.answer if number == len(found) else ""
                tool = (named["tool"] or "").strip()
                yield TraceStep(tool, match[0] if arguments is None else arguments, answer, step.refused)
            if not found:
                yield step


def call_pattern(text: str) -> CallPattern:
    """The parsed value of ``--call``.

    Raises:
        TracesError: it is not a regular expression, or has no group ``tool``.
    """
    try:
        pattern = re.compile(text, re.MULTILINE)
    except re.error as error:
        raise TracesError(f"--call {text}: not a regular expression: {error}") from error
    if "tool" not in pattern.groupindex or pattern.groupindex.keys() - {"tool", "arguments"}:
        raise TracesError(
            f"--call {text}: its named groups must be (?P<tool>...) for the tool's name and, if needed, "
            f"(?P<arguments>...)"
        )
    return CallPattern(pattern)
