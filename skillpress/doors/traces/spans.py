"""Spans of a traced program, of any recorder, as the steps of an agent.

A tool's span is a step, in the order in which they started. What happens inside a tool, a sub-agent
included, is part of that step. A model's answer without a call is a step in words; its calls are steps only
if the trace has no spans of tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skillpress.doors.traces.atif import SUB_AGENTS
from skillpress.doors.traces.conversation import read_conversation
from skillpress.environments.calls.steps import TraceStep


@dataclass(frozen=True)
class Span:
    """One span."""

    identity: str
    parent: str
    kind: Literal["tool", "model", "agent", "other"]
    start: float
    """Any unit that orders the spans of a trace."""
    tool: str = ""
    arguments: Any = None
    result: Any = ""
    failed: bool = False
    said: Sequence[Any] = ()
    """The messages that a model answered with."""


def steps_of(spans: Sequence[Span]) -> tuple[tuple[TraceStep, ...], dict[str, int]]:
    """(steps, reasons for the rest) of a trace.

    Raises:
        UnreadableTraceError: a model's answer cannot be read.
    """
    ordered = sorted(spans, key=lambda span: span.start)
    by_name = {span.identity: span for span in ordered}
    outside = [span for span in ordered if not _inside_tool(span, by_name)]
    within = Counter(span.kind for span in ordered if _inside_tool(span, by_name))
    tools = any(span.kind == "tool" for span in outside)
    steps: list[TraceStep] = []
    for span in outside:
        if span.kind == "tool":
            steps.append(TraceStep(span.tool, span.arguments, span.result, span.failed))
        elif span.kind == "model" and span.said:
            found = read_conversation([], span.said).steps
            steps += (step for step in found if step.tool is None) if tools else found
    return tuple(steps), {SUB_AGENTS: within["agent"]} if within["agent"] else {}


def _inside_tool(span: Span, by_name: Mapping[str, Span]) -> bool:
    seen = {span.identity}
    above = by_name.get(span.parent)
    while above is not None and above.identity not in seen:
        if above.kind == "tool":
            return True
        seen.add(above.identity)
        above = by_name.get(above.parent)
    return False
