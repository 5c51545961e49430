"""Exports of Langfuse: a trace with its observations and scores, or observations on lines of their own.

An observation of type TOOL is a step; of type GENERATION, its output is the model's answer. Both ways of
writing names are read, ``parentObservationId`` and ``parent_observation_id``. The score whose name means
success is the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from skillpress.doors.traces.chat import messages_of_answer
from skillpress.doors.traces.fields import dig, either, seconds
from skillpress.doors.traces.outcome import Outcome, candidates_of, decided
from skillpress.doors.traces.spans import Span, steps_of
from skillpress.doors.traces.trace import Trace, UnreadableTraceError
from skillpress.environments.calls.steps import unfolded

_KINDS: Mapping[Any, Literal["tool", "model", "agent", "other"]] = {
    "TOOL": "tool", "GENERATION": "model", "AGENT": "agent",
    **dict.fromkeys(
        ("SPAN", "EVENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"), "other"
    ),
}  # fmt: skip


def recognises(record: Any) -> bool:
    """Whether the record is a trace with observations, or the observations of a trace."""
    observations = _observations(record)
    if not observations:
        return False
    return all(run_of(each, inside=True) is not None for each in observations)


def run_of(record: Any, inside: bool = False) -> str | None:
    """The trace of an observation; None if the record is not one.

    Args:
        inside: whether the record is inside a trace, which then need not be named.
    """
    if not isinstance(record, dict) or _kind(record) is None:
        return None
    trace = record.get("traceId", record.get("trace_id"))
    timed = {"startTime", "start_time"} & record.keys()
    if "id" not in record or not timed or not (isinstance(trace, str) or inside):
        return None
    return trace if isinstance(trace, str) else ""


def read(record: Any) -> Trace:
    """The trace of observations.

    Raises:
        UnreadableTraceError: no observation is a call of a tool or an answer of a model.
    """
    whole = _whole(record)
    observations = _observations(record) or []
    steps, left_out = steps_of([_span(each) for each in observations])
    if not steps:
        raise UnreadableTraceError("observations without a call of a tool or an answer of a model")
    ended = _outcome(record)
    models = (either(each, "model", "providedModelName", "provided_model_name") for each in observations)
    times = (seconds(either(each, "startTime", "start_time")) for each in observations)
    first = observations[0]
    return Trace(
        str(either(whole, "id") or either(first, "traceId", "trace_id") or "")[:200],
        steps,
        task=str(either(whole, "sessionId", "session_id") or either(first, "sessionId", "session_id") or "")[
            :200
        ],
        version=str(either(whole, "version") or next(filter(None, models), ""))[:200],
        time=min((time for time in times if time is not None), default=None),
        left_out=left_out,
        **ended._asdict(),
    )


def field(record: Any, path: str) -> Any:
    """The value of the score of this name, or at a path of the trace or of its first observation."""
    scores = record.get("scores") if isinstance(record, dict) else None
    for score in scores if isinstance(scores, list) else ():
        if isinstance(score, dict) and score.get("name") in (path, path.removeprefix("scores.")):
            return _scored(score)
    whole = _whole(record)
    if (value := dig(whole, path)) is not None:
        return value
    return next(
        (value for each in _observations(record) or () if (value := dig(each, path)) is not None), None
    )


def _whole(record: Any) -> Mapping[str, Any]:
    """The fields of the trace."""
    if not isinstance(record, dict):
        return {}
    return record["trace"] if isinstance(record.get("trace"), dict) else record


def _observations(record: Any) -> list[Any] | None:
    if isinstance(record, list):
        return record
    if not isinstance(record, dict):
        return None
    held = record.get("observations", _whole(record).get("observations"))
    return held if isinstance(held, list) else None


def _kind(each: Mapping[str, Any]) -> Literal["tool", "model", "agent", "other"] | None:
    kind = each.get("type")
    return _KINDS.get(kind) if isinstance(kind, str) else None


def _span(each: Mapping[str, Any]) -> Span:
    kind = _kind(each) or "other"
    output = unfolded(each.get("output"))
    messages: Sequence[Any] = ()
    if kind == "model" and output is not None:
        messages = messages_of_answer(output) or [{"role": "assistant", "content": output}]
    start = seconds(either(each, "startTime", "start_time"))
    return Span(
        str(each.get("id")),
        str(either(each, "parentObservationId", "parent_observation_id") or ""),
        kind=kind,
        start=0.0 if start is None else start,
        tool=str(each.get("name") or "").removeprefix("execute_tool "),
        arguments=unfolded(each.get("input")),
        result="" if output is None else output,
        failed=each.get("level") == "ERROR",
        said=messages,
    )


def _outcome(record: Any) -> Outcome:
    """The outcome by the score whose name means success."""
    scores = record.get("scores", _whole(record).get("scores")) if isinstance(record, dict) else None
    held = (score for score in scores if isinstance(score, dict)) if isinstance(scores, list) else ()
    return decided(candidates_of((f"scores.{score.get('name')}", _scored(score)) for score in held))


def _scored(score: Mapping[str, Any]) -> Any:
    text = either(score, "stringValue", "string_value")
    return text if text is not None and score.get("value") is None else score.get("value")
