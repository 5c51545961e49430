"""Descriptions of how a log was read, shared by the page and the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from skillpress.core.visible import line
from skillpress.logs.log import Log


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as ``1 trace`` or ``1,484 steps``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def outcome_lines(log: Log) -> list[str]:
    """The fields that decided the outcomes, with their counts."""
    lines = [line(text, 160) for text in log.outcomes.lines()]
    if log.outcomes.named() or any(trace.success is not None for trace in log.traces):
        return lines
    if log.outcomes.others:
        return ["not certain; --success FIELD takes one", *lines]
    return ["none found; --success FIELD names the field that says which traces succeeded"]


def left_out(log: Log) -> Iterator[str]:
    """The contents of the log that are not in its traces' steps."""
    yield from (f"{count:,} {line(reason, 80)}" for reason, count in log.left_out.items())
    if log.bad_lines:
        yield counted(log.bad_lines, "bad line")
    if log.passed_over:
        yield f"{counted(len(log.passed_over), 'file')} without a trace"


def skill_names(log: Log) -> list[tuple[str, int]]:
    """The skills with their number of steps, most frequent first."""
    counts: Counter[str] = Counter()
    for skills, times in Counter(log.skills).items():
        for skill in skills:
            counts[skill] += times
    return counts.most_common()
