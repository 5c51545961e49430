"""Spans of a traced program, of any recorder, as the steps of an agent.

A tool's span is a step, in the order in which they started. What happens inside a tool, a sub-agent included,
is part of that step. A model's answer without a call is a step in words; its calls are steps only if the
trace has no spans of tools. Recorders also write spans that are not steps: one that encloses several tools
("running 2 tools"), a second one around the same call of a model, an answer without content, and models that
judge the agent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skillpress.environments.calls.steps import TraceStep, text_of
from skillpress.logs.atif import SUB_AGENTS
from skillpress.logs.conversation import read_conversation

JUDGES = "spans of evaluators and guardrails"
Kind = Literal["tool", "model", "agent", "judge", "other"]
_NAMED = re.compile(
    r"(?:execut(?:e|ing)[_ ]tool|(?:running|calling|call|invoke|using) tool|tool[_ ]?call|tools/call|tool)"
    r"(?::\s*|\s+|/)(?P<name>\S.*)",
    re.IGNORECASE,
)
_AROUND = re.compile(r"(?:running|executing|calling) (?:\d+ )?tools?(?:: .*,.*)?", re.IGNORECASE)


def tool_in(name: str) -> str | None:
    """The tool in a span's name such as ``execute_tool x`` and ``running tool: x``; None for other names."""
    found = _NAMED.fullmatch(name.strip())
    return found["name"].strip() if found is not None else None


def is_around_tools(name: str) -> bool:
    """Whether a span's name says that it encloses several tools, without naming one."""
    return _AROUND.fullmatch(name.strip()) is not None


@dataclass(frozen=True)
class Span:
    """One span."""

    identity: str
    parent: str
    kind: Kind
    start: float
    """Start time, in any unit that orders the spans of a trace."""
    tool: str = ""
    arguments: Any = None
    result: Any = ""
    failed: bool = False
    said: Sequence[Any] = ()
    """The messages of a model's answer."""


def steps_of(spans: Sequence[Span]) -> tuple[tuple[TraceStep, ...], dict[str, int]]:
    """(steps, reasons for the rest) of a trace.

    Raises:
        UnreadableTraceError: a model's answer cannot be read.
    """
    by_name = {span.identity: span for span in spans}  # of a span that is written again, the last counts
    ordered = sorted(by_name.values(), key=lambda span: span.start)
    outside = [span for span in ordered if not _inside(span, by_name, ("tool", "judge"))]
    within = Counter(span.kind for span in ordered if _inside(span, by_name, ("tool",)))
    tools = any(span.kind == "tool" for span in outside)
    steps: list[TraceStep] = []
    for span in outside:
        if span.kind == "tool":
            steps.append(TraceStep(span.tool, span.arguments, span.result, span.failed))
        elif span.kind == "model" and span.said and not _inside(span, by_name, ("model",), said=True):
            found = read_conversation([], span.said).steps
            steps += (step for step in found if _says(step) and not (tools and step.tool is not None))
    judges = sum(span.kind == "judge" for span in ordered)
    left_out = {SUB_AGENTS: within["agent"], JUDGES: judges}
    return tuple(steps), {reason: count for reason, count in left_out.items() if count}


def _says(step: TraceStep) -> bool:
    """Whether a step is a call, or has words: a thought alone, or a structure without text, is left out."""
    return step.tool is not None or bool(text_of(step.content).strip())


def _inside(span: Span, by_name: Mapping[str, Span], kinds: Container[Kind], said: bool = False) -> bool:
    """Whether a span of one of these kinds encloses this one.

    Args:
        said: whether only spans with an answer of a model count.
    """
    seen = {span.identity}
    above = by_name.get(span.parent)
    while above is not None and above.identity not in seen:
        if above.kind in kinds and (above.said or not said):
            return True
        seen.add(above.identity)
        above = by_name.get(above.parent)
    return False
