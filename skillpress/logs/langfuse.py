"""Exports of Langfuse: a trace with its observations and scores, or observations on lines of their own.

An observation of type TOOL is a step; of type GENERATION, its output is the model's answer. Both ways of
writing names are read, ``parentObservationId`` and ``parent_observation_id``. The score whose name means
success is the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillpress.environments.calls.steps import text_of, unfolded
from skillpress.logs.chat import messages_of_answer
from skillpress.logs.fields import dig, either, seconds
from skillpress.logs.messages import is_message
from skillpress.logs.outcome import FoundOutcome, candidates_of, decided
from skillpress.logs.spans import Kind, Span, is_around_tools, steps_of, tool_in
from skillpress.logs.trace import Trace, UnreadableTraceError

_KINDS: Mapping[Any, Kind] = {
    "TOOL": "tool", "GENERATION": "model", "AGENT": "agent", "EVALUATOR": "judge", "GUARDRAIL": "judge",
    **dict.fromkeys(("SPAN", "EVENT", "CHAIN", "RETRIEVER", "EMBEDDING"), "other"),
}  # fmt: skip
_TOOL = ("gen_ai.tool.name", "tool.name", "tool_name")
_ASKED = ("gen_ai.tool.call.arguments", "tool_arguments", "input.value")
_ANSWERED = ("gen_ai.tool.call.result", "tool_response", "output.value")
"""Attributes in an observation's metadata for which Langfuse has no field."""


def recognises(record: Any) -> bool:
    """Whether the record is a trace with observations, or the observations of one trace."""
    observations = _observations(record)
    if not observations:
        return False
    traces = {run_of(each, inside=True) for each in observations}
    return None not in traces and (len(traces) == 1 or isinstance(record, dict))


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
        raise UnreadableTraceError("the observations contain neither a tool call nor a model's answer")
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


def _kind(each: Mapping[str, Any]) -> Kind | None:
    kind = each.get("type")
    return _KINDS.get(kind) if isinstance(kind, str) else None


def _span(each: Mapping[str, Any]) -> Span:
    kind, name, attributes = _kind(each) or "other", str(each.get("name") or ""), _attributes(each)
    named = either(attributes, *_TOOL) or tool_in(name)
    if (
        kind == "other"
        and named is not None
        and (tool_in(name) or attributes.get(_OPERATION) == "execute_tool")
    ):
        kind = "tool"
    if kind == "tool" and named is None and is_around_tools(name):
        kind = "other"
    output = unfolded(either(each, "output"))
    result = unfolded(either(attributes, *_ANSWERED)) if output is None and kind == "tool" else output
    arguments = unfolded(either(each, "input"))
    start = seconds(either(each, "startTime", "start_time"))
    return Span(
        str(each.get("id")),
        str(either(each, "parentObservationId", "parent_observation_id") or ""),
        kind=kind,
        start=0.0 if start is None else start,
        tool=str(named or name),
        arguments=unfolded(either(attributes, *_ASKED)) if arguments is None else arguments,
        result="" if result is None else result,
        failed=each.get("level") == "ERROR",
        said=_said(output) if kind == "model" else (),
    )


_OPERATION = "gen_ai.operation.name"


def _attributes(each: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of the span that an observation was made from."""
    metadata = unfolded(each.get("metadata"))
    held = unfolded(metadata.get("attributes")) if isinstance(metadata, dict) else None
    return held if isinstance(held, dict) else metadata if isinstance(metadata, dict) else {}


def _said(output: Any) -> Sequence[Any]:
    """The messages of a model's answer. Parts without a role, and text, are the model's."""
    if output is None:
        return ()
    if (messages := messages_of_answer(output)) is not None:
        return [_with_parts(each) for each in messages]
    if isinstance(output, list) and output and isinstance(output[0], dict) and "parts" not in output[0]:
        output = {"parts": output}
    answers = output if isinstance(output, list) else [output]
    return [message for each in answers for message in _answer(each)]


def _with_parts(message: Any) -> Any:
    """A message with a role; if its content is empty, it gets its parts as content."""
    if not isinstance(message, dict):
        return message
    message = message if is_message(message) else {**message, "role": "assistant"}
    content = message.get("content")
    parts = (
        content.get("parts") if isinstance(content, dict) else message.get("parts") if not content else None
    )
    if not isinstance(parts, list):
        return message
    return {**{key: held for key, held in message.items() if key != "content"}, "parts": parts}


def _answer(output: Any) -> Sequence[Any]:
    """The messages of an answer without a role."""
    if not isinstance(output, dict):
        return [{"role": "assistant", "content": output if isinstance(output, str) else text_of(output)}]
    inside = output.get("content")
    if isinstance(inside, dict) and "parts" in inside:
        return [{**inside, "role": "assistant"}]
    if isinstance(output.get("parts"), list):
        return [{"role": "assistant", "parts": output["parts"]}]
    if isinstance(inside, str | list) or output.get("tool_calls"):
        return [{**output, "role": "assistant"}]
    return [{"role": "assistant", "content": text_of(output)}]


def _outcome(record: Any) -> FoundOutcome:
    """The outcome by the score whose name means success."""
    scores = record.get("scores", _whole(record).get("scores")) if isinstance(record, dict) else None
    held = (score for score in scores if isinstance(score, dict)) if isinstance(scores, list) else ()
    return decided(candidates_of((f"scores.{score.get('name')}", _scored(score)) for score in held))


def _scored(score: Mapping[str, Any]) -> Any:
    text = either(score, "stringValue", "string_value")
    return text if text is not None and score.get("value") is None else score.get("value")
