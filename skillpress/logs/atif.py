"""ATIF 1.x (Agent Trajectory Interchange Format): one JSON object is one run of an agent.

Every tool call is a step, and a turn of the agent without a call is a step in words. Content copied from an
earlier document (``is_copied_context``) is not a step of this one. Documents that continue one another
(``continued_trajectory_ref``) are one run: they name one session, to which some writers add ``-cont-1``.
Runs of other agents inside (``subagent_trajectories``) are counted and not read. The format does not record
success: ``--success`` names a field, such as ``extra.reward>=1``.

Our own exports are read as the rollout file that they came from: their one function ``act`` is the
environment's action, and the document's ``extra`` says how the episode ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.environments.calls.steps import TraceStep, acted
from skillpress.logs.fields import dig, first_time
from skillpress.logs.messages import CallResult, LoggedCall, LoggedMessage
from skillpress.logs.rollouts import own_trace
from skillpress.logs.trace import Dialogue, ModelCallPlace, Trace, UnreadableTraceError

SUB_AGENTS, COPIED = "runs of sub-agents", "steps of copied context"
_CONTINUED = re.compile(r"-cont(?:inued)?(?:-\d+)?\Z")
OURS = "skillpress"
"""The agent's name in our exports."""


def recognises(record: Any) -> bool:
    """Whether the record says that it is ATIF."""
    return isinstance(record, Mapping) and str(record.get("schema_version", "")).startswith("ATIF-")


def read(record: Any) -> Trace:
    """The trace of a document.

    Raises:
        UnreadableTraceError: the document has another major version, or no list of steps.
    """
    version = record["schema_version"]
    if not version.startswith("ATIF-v1."):
        raise UnreadableTraceError(f"{version[:40]} is not supported; only ATIF-v1.x can be read")
    if not isinstance(record.get("steps"), list):
        raise UnreadableTraceError("an ATIF document has no list of steps")
    agent = record.get("agent") or {}
    if agent.get("name") == OURS:
        return own_trace(record["extra"], _acted(record["steps"]))
    return Trace(
        str(record.get("trajectory_id") or record.get("session_id") or ""),
        tuple(_steps(record["steps"])),
        version=" ".join(str(agent[key]) for key in ("name", "version", "model_name") if agent.get(key))[
            :200
        ],
        time=first_time(step.get("timestamp") for step in record["steps"]),
        left_out=_left_out(record),
        call=_call(record),
        dialogue=_dialogue(record),
    )


def _call(record: Mapping[str, Any]) -> ModelCallPlace | None:
    """Where a document belongs in its run, if it continues another document (and begins with a copy of it) or
    is continued; None if it is the complete run.
    """
    session = str(record.get("session_id") or "")
    first = _CONTINUED.sub("", session)
    copied = [bool(step.get("is_copied_context")) for step in record["steps"][:1]]
    if not first or not (record.get("continued_trajectory_ref") or copied == [True] or first != session):
        return None
    return ModelCallPlace(session=first[:200], own=str(record.get("trajectory_id") or session)[:200])


def _left_out(record: Mapping[str, Any]) -> dict[str, int]:
    counts = {
        SUB_AGENTS: len(record.get("subagent_trajectories") or ()),
        COPIED: sum(bool(step.get("is_copied_context")) for step in record["steps"]),
    }
    return {reason: count for reason, count in counts.items() if count}


def _dialogue(record: Mapping[str, Any]) -> Dialogue | None:
    """The document's steps as messages; the results of an agent's step are the answers to its calls."""
    turns: list[LoggedMessage] = []
    for step in record["steps"]:
        if not isinstance(step, Mapping) or step.get("is_copied_context"):
            return None  # what the model was shown is not what is here
        source = step.get("source")
        if source != "agent":
            turns.append(LoggedMessage("system" if source == "system" else "user", step.get("message")))
            continue
        calls = [
            LoggedCall(str(call.get("tool_call_id") or ""), str(call["function_name"]), call.get("arguments"))
            for call in step.get("tool_calls") or ()
        ]
        results = (step.get("observation") or {}).get("results") or ()
        turns.append(LoggedMessage("assistant", step.get("message"), calls=tuple(calls)))
        answers = [
            CallResult(str(result.get("source_call_id") or ""), "", result.get("content"), False)
            for result in results
        ]
        turns += [LoggedMessage("tool" if calls else "user", None, answers=tuple(answers))] if answers else []
    tools = dig(record, "agent.tool_definitions")
    return Dialogue(tuple(turns), tuple(tools) if isinstance(tools, list) else ())


def _acted(steps: list[Any]) -> Iterator[TraceStep]:
    for step in steps:
        extra = step.get("extra") or {}
        if step.get("source") == "agent" and not extra.get("summary"):
            calls, results = step.get("tool_calls"), (step.get("observation") or {}).get("results")
            action = calls[0]["arguments"]["action"] if calls else ""
            yield from acted(str(action), results[0]["content"] if results else "", "invalid" in extra)


def _steps(steps: list[Any]) -> Iterator[TraceStep]:
    for step in steps:
        if step.get("source") != "agent" or step.get("is_copied_context"):
            continue
        results = (step.get("observation") or {}).get("results") or ()
        calls = step.get("tool_calls") or ()
        answers = {result.get("source_call_id"): result.get("content") for result in results}
        for call in calls:
            answer = answers.get(call.get("tool_call_id"), answers.get(None) if len(calls) == 1 else "")
            yield TraceStep(str(call["function_name"]), call.get("arguments"), answer)
        if not calls:
            yield TraceStep(None, step.get("message"), next(iter(answers.values()), ""))
