"""MLflow traces as ``Trace.to_json`` and ``search_traces`` write them (MLflow 3, and the spans of MLflow 2).

A span of type TOOL is a step, in the order in which they started; a span inside another is part of it. If an
agent has no such span, the answers of its chat models are read: their tool calls, or their words. A trace's
session is its task. ``--success`` names an assessment, a tag, an entry of the metadata, or a path.

Traces that skillpress itself logs are read as the rollouts that they came from: a decision is a step, the
call of ``act`` after it is the environment's action, and the tags say how the episode ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.environments.calls.steps import TraceStep, acted, json_or, json_value
from skillpress.logs.chat import messages_of_answer
from skillpress.logs.conversation import read_conversation
from skillpress.logs.fields import dig, seconds
from skillpress.logs.outcome import candidates_of, decided
from skillpress.logs.rollouts import own_trace
from skillpress.logs.trace import Trace, UnreadableTraceError

_MODELS = ("CHAT_MODEL", "LLM")
OURS = {"group_id", "rollout_index", "policy_version", "won"}
"""Tags that occur together only in our own traces."""


def recognises(record: Any) -> bool:
    """Whether the record has a trace's info and data, or is a row of ``search_traces`` with both in one
    column."""
    if not isinstance(record, Mapping):
        return False
    if isinstance(record.get("info"), Mapping) and {"trace_id", "request_id"} & record["info"].keys():
        return True
    return "trace" in record and "trace_id" in record and isinstance(record["trace"], str | Mapping)


def read(record: Any) -> Trace:
    """The trace of a record.

    Raises:
        UnreadableTraceError: the record has no spans.
    """
    whole = _whole(record)
    info, spans = whole["info"], (whole.get("data") or {}).get("spans")
    if not isinstance(spans, list):
        raise UnreadableTraceError("the MLflow trace has no spans; export it with its data")
    if (info.get("tags") or {}).keys() >= OURS:
        return _exported(info, spans)
    metadata = info.get("trace_metadata") or info.get("request_metadata") or {}
    time = seconds(info.get("request_time"))
    return Trace(
        str(info.get("trace_id") or info.get("request_id") or ""),
        tuple(_steps(spans)),
        task=str(metadata.get("mlflow.trace.session") or "")[:200],
        version=str(metadata.get("mlflow.modelId") or "")[:200],
        time=seconds(info.get("timestamp_ms")) if time is None else time,
        **decided(candidates_of(_assessed(record, info)))._asdict(),
    )


def _assessed(record: Any, info: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each assessment that is not an expectation."""
    named = (
        each.get("assessment_name")
        for each in info.get("assessments") or ()
        if each.get("feedback") is not None
    )
    yield from ((name, field(record, name)) for name in dict.fromkeys(named) if isinstance(name, str))


def field(record: Any, path: str) -> Any:
    """The value of the last valid assessment of this name, else of a tag, of the metadata, or at a path."""
    info = (whole := _whole(record))["info"]
    for assessment in reversed(info.get("assessments") or ()):
        if assessment.get("assessment_name") == path and assessment.get("valid", True):
            return (assessment.get("feedback") or assessment.get("expectation") or {}).get("value")
    for named in ("tags", "trace_metadata", "request_metadata"):
        if path in (info.get(named) or {}):
            return info[named][path]
    return dig(whole, path)


def _exported(info: Mapping[str, Any], spans: Sequence[Any]) -> Trace:
    tags, task = info["tags"], info["trace_metadata"]["mlflow.trace.session"]
    typed = {"won": tags["won"] == "true", "policy_version": float(tags["policy_version"])}
    return own_trace({"policy": "", **tags, **typed, "task_id": task}, _acted(spans))


def _acted(spans: Sequence[Any]) -> Iterator[TraceStep]:
    """Every decision with the call after it. A decision without a call did nothing readable."""
    ordered = _by_start(spans)
    for place, span in enumerate(ordered):
        if _value(span, "mlflow.spanType") in _MODELS and not _value(span, "summary"):
            behind = ordered[place + 1] if place + 1 < len(ordered) else {}
            called = _value(behind, "mlflow.spanType") == "TOOL"
            action = _value(behind, "mlflow.spanInputs")["action"] if called else ""
            answer = _value(behind, "mlflow.spanOutputs")["observation"] if called else ""
            yield from acted(action, answer, _value(span, "invalid") is not None)


def _by_start(spans: Sequence[Any]) -> list[Any]:
    return sorted(spans, key=lambda span: span.get("start_time_unix_nano") or span.get("start_time") or 0)


def _whole(record: Any) -> Any:
    if "info" in record:
        return record
    row = record["trace"]
    try:
        return json_value(row) if isinstance(row, str) else row
    except (ValueError, RecursionError) as error:
        raise UnreadableTraceError(f"the column 'trace' is not JSON ({error})") from error


def _steps(spans: Sequence[Any]) -> Iterator[TraceStep]:
    kinds = {_identity(span): _value(span, "mlflow.spanType") for span in spans}
    above = {_identity(span): span.get("parent_span_id") or span.get("parent_id") for span in spans}
    ordered = _by_start(spans)
    tools = [span for span in ordered if kinds[_identity(span)] == "TOOL"]
    for span in tools:
        if not _inside_tool(_identity(span), above, kinds):
            yield TraceStep(
                str(span["name"]),
                _value(span, "mlflow.spanInputs"),
                _value(span, "mlflow.spanOutputs"),
                _failed(span),
            )
    if not tools:
        for span in ordered:
            if kinds[_identity(span)] in _MODELS:
                yield from _sampled(_value(span, "mlflow.spanOutputs"))


def _sampled(outputs: Any) -> Iterator[TraceStep]:
    """A chat model's answer: its calls, or its words."""
    messages = messages_of_answer(outputs)
    if messages is not None:
        yield from read_conversation([], messages).steps
    else:
        yield TraceStep(None, outputs.get("content") if isinstance(outputs, Mapping) else outputs)


def _inside_tool(span: Any, above: Mapping[Any, Any], kinds: Mapping[Any, Any]) -> bool:
    seen = set()
    while (span := above.get(span)) is not None and span not in seen:
        if kinds.get(span) == "TOOL":
            return True
        seen.add(span)
    return False


def _identity(span: Mapping[str, Any]) -> Any:
    return span.get("span_id") or (span.get("context") or {}).get("span_id")


def _failed(span: Mapping[str, Any]) -> bool:
    status = span.get("status") or {}
    code = status.get("code") if isinstance(status, Mapping) else status
    return "ERROR" in str(code or span.get("status_code"))


def _value(span: Mapping[str, Any], attribute: str) -> Any:
    """An attribute's value; MLflow stores each as JSON text."""
    value = (span.get("attributes") or {}).get(attribute)
    return json_or(value, value) if isinstance(value, str) else value
