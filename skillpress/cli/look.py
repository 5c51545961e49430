"""What was understood of a log, in words: in five lines, or in full with the first trace step by step.

Texts of a log are shown on one line each, with hidden characters as codes (``core/visible.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from skillpress.core.visible import line
from skillpress.environments.calls.steps import action_of
from skillpress.logs.log import Log
from skillpress.logs.projection import TraceProjection
from skillpress.logs.trace import Bad, PassedOver
from skillpress.reports.skills_page.understood import counted, left_out, outcome_lines, skill_names

TOOLS, TOOLS_WHOLE = 8, 40
STEPS, ACTION = 60, 90
"""The command prints at most this many steps of the first trace, and characters of a step."""
NAMED = 8
"""The command names at most this many bad lines and files."""


def in_five_lines(log: Log, projected_by: str) -> Iterator[str]:
    """Lines on the traces, the tools, the outcomes, the parts that were left out, and the skills."""
    formats = ", ".join(line(name, 60) for name, _ in log.formats.most_common())
    yield f"read: {counted(len(log), 'trace')} ({formats}), {_steps(log)}"
    yield f"tools: {_tools(log)}"
    yield f"outcomes: {'; '.join(outcome_lines(log))}"
    yield f"left out: {', '.join(left_out(log)) or 'nothing'}"
    yield f"skills: {len(log.alphabet):,}, by {projected_by}; {_without(log)}"


def whole(log: Log, projection: TraceProjection, projected_by: str) -> Iterator[str]:
    """What :func:`in_five_lines` says, in full, and the first trace."""
    for name, count in log.formats.most_common():
        yield f"format    {line(name, 60)}: {counted(count, 'trace')}"
    yield f"files     {len(log.files):,}"
    yield f"steps     {_steps(log)}"
    for number, (name, count) in enumerate(log.tools.most_common(TOOLS_WHOLE)):
        yield f"{'' if number else 'tools':10}{line(name, 60) or '(no name)'}: {counted(count, 'call')}"
    if len(log.tools) > TOOLS_WHOLE:
        yield f"{'':10}and {len(log.tools) - TOOLS_WHOLE:,} others"
    for number, text in enumerate(outcome_lines(log)):
        yield f"{'' if number else 'outcomes':10}{text}"
    for number, text in enumerate([*left_out(log), *_named(log)] or ["nothing"]):
        yield f"{'' if number else 'left out':10}{text}"
    yield f"skills    {len(log.alphabet):,}, by {projected_by}; {_without(log)}"
    for name, count in skill_names(log)[:TOOLS_WHOLE]:
        yield f"{'':10}{line(name, 60)}: {counted(count, 'time')}"
    for warning in log.warnings:
        yield f"warning   {warning}"
    yield from _first(log, projection)


def _first(log: Log, projection: TraceProjection) -> Iterator[str]:
    trace = log.first
    if trace is None:
        return
    outcome = {True: "success", False: "failure", None: "outcome unknown"}[trace.success]
    named = " ".join(line(text, 60) for text in (trace.name, trace.task) if text)
    yield ""
    yield f"the first trace{': ' if named else ''}{named} ({outcome}, {counted(len(trace.steps), 'step')})"
    labels = projection(trace.steps)
    width = min(30, max((len(name) for name in log.alphabet), default=1))
    for number, (step, found) in enumerate(zip(trace.steps[:STEPS], labels, strict=False), 1):
        skills = [log.renamed[label] for label in found if label in log.renamed]
        said = line(" ".join(action_of(step)[:500].split()), ACTION)
        tool = "" if step.tool is None else f"{line(step.tool, 40) or '(no name)'}: "
        refused = "refused: " if step.refused else ""
        yield f"{number:4}  {line(' + '.join(skills) or '-', 60):{width}}  {refused}{tool}{said}"
    if len(trace.steps) > STEPS:
        yield f"      and {len(trace.steps) - STEPS:,} steps more"


def _steps(log: Log) -> str:
    return f"{counted(log.steps, 'step')}: {log.called:,} call a tool, {log.in_words:,} are words"


def _tools(log: Log) -> str:
    shown = [f"{line(name, 40) or '(no name)'} {count:,}" for name, count in log.tools.most_common(TOOLS)]
    more = len(log.tools) - len(shown)
    return ", ".join(shown) + (f" and {more:,} others" if more > 0 else "") or "none is called"


def _without(log: Log) -> str:
    without = log.unlabelled.total()
    return f"{counted(without, 'step')} without a skill" if without else "every step has one"


def _named(log: Log) -> Iterator[str]:
    """The first bad lines and files without traces, with their reasons."""
    for bad in log.bad[:NAMED]:
        yield f"  {_place(bad)}: {line(bad.why, 200)}"
    for passed in log.passed_over[:NAMED]:
        yield f"  {_place(passed)}: {line(passed.why, 200)}"


def _place(found: Bad | PassedOver) -> str:
    where = line(found.file, 160)
    return f"{where}, line {found.number}" if isinstance(found, Bad) else where
