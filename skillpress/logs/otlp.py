"""OpenTelemetry spans by the conventions for generative AI, as OTLP in JSON or as an SDK prints them.

A span ``execute_tool`` is a step; a span of a model has its answer in ``gen_ai.output.messages``, or in the
older events (``gen_ai.choice``). Spans of a trace come in any order and in several documents. A result of an
evaluation (``gen_ai.evaluation.result``) is the outcome. OpenInference and OpenLLMetry use other names for
the same things; their tool spans are read too, also in the lists and tables that Arize Phoenix writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.environments.calls.steps import text_of, unfolded
from skillpress.logs import phoenix
from skillpress.logs.chat import messages_of_answer
from skillpress.logs.fields import dig, either, seconds
from skillpress.logs.messages import is_message
from skillpress.logs.outcome import candidates_of, decided
from skillpress.logs.spans import Kind, Span, is_around_tools, steps_of, tool_in
from skillpress.logs.trace import Trace, UnreadableTraceError

_KINDS: Mapping[str, Kind] = {
    "execute_tool": "tool",
    "tool": "tool",
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "llm": "model",
    "invoke_agent": "agent",
    "agent": "agent",
    "evaluator": "judge",
    "guardrail": "judge",
}
_KIND_NAMES = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "llm.request.type")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "input.value",
    "traceloop.entity.input",
    "tool.parameters",
)
_MARKS = ("gen_ai.", "openinference.", "traceloop.", "llm.")
_EVALUATION = "gen_ai.evaluation."
_SESSIONS = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")


def runs(value: Any) -> Sequence[Any] | None:
    """The spans of an OTLP document, or of a list with spans under ``spans`` or ``data``; None for others."""
    if not isinstance(value, dict):
        return None
    resources = _listed(value, "resourceSpans", "resource_spans")
    if resources is None:
        listed = _listed(value, "spans", "data") or ()
        return listed if all(run_of(span) is not None for span in listed) and _of_agents(listed) else None
    spans: list[Any] = []
    for resource in resources:
        for scope in _listed(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans") or ():
            spans += _listed(scope, "spans") or ()
    return spans


def run_of(record: Any) -> str | None:
    """The trace of a span; None if the record is not a span."""
    if not isinstance(record, dict) or "name" not in record:
        return None
    record = phoenix.span_of(record)
    context = record.get("context")
    held = context if isinstance(context, dict) else record
    trace, span = either(held, "traceId", "trace_id"), either(held, "spanId", "span_id")
    timed = either(record, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
    if not isinstance(trace, str) or not isinstance(span, str) or timed is None:
        return None
    return trace if isinstance(record.get("attributes", []), list | dict) else None


def recognises(record: Any) -> bool:
    """Whether the record is the spans of one trace, some of them about a model or an agent."""
    if not isinstance(record, list) or not record:
        return False
    traces = {run_of(span) for span in record}
    if len(traces) > 1 or None in traces:
        return False
    return _of_agents(record)


def _of_agents(spans: Sequence[Any]) -> bool:
    """Whether some of the spans are about a model or an agent."""
    return any(str(key).startswith(_MARKS) for span in spans for key in _attributes(phoenix.span_of(span)))


def read(record: Any) -> Trace:
    """The trace of spans.

    Raises:
        UnreadableTraceError: no span is a call of a tool or an answer of a model.
    """
    record = [phoenix.span_of(span) for span in record]
    attributes = [_attributes(span) for span in record]
    steps, left_out = steps_of([_span(span, held) for span, held in zip(record, attributes, strict=True)])
    if not steps:
        raise UnreadableTraceError(
            "the spans contain neither a tool call nor a message; record the content of messages "
            "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)"
        )
    ended = decided(candidates_of(_evaluations(record, attributes)))
    return Trace(
        run_of(record[0]) or "",
        steps,
        task=_named(attributes, _SESSIONS),
        version=_named(attributes, ("gen_ai.agent.version", "gen_ai.request.model", "gen_ai.response.model")),
        time=min(_start(span) for span in record) / 1e9,
        left_out=left_out,
        **ended._asdict(),
    )


def field(record: Any, path: str) -> Any:
    """The value of an evaluation, of the first span's attribute of this name, or at a path of a span."""
    record = [phoenix.span_of(span) for span in record]
    if path.startswith(_EVALUATION):
        found = _evaluations(record, [_attributes(span) for span in record])
        if (value := next((value for name, value in found if name == path), None)) is not None:
            return value
    for span in record:
        held = _attributes(span)
        if (value := held[path] if path in held else dig(span, path)) is not None:
            return value
    return None


def _span(span: Mapping[str, Any], held: Mapping[str, Any]) -> Span:
    context = span.get("context") if isinstance(span.get("context"), dict) else span
    return Span(
        str(either(context, "spanId", "span_id")),
        str(either(span, "parentSpanId", "parent_span_id", "parent_id", "parentId") or ""),
        kind=_kind(span, held),
        start=_start(span),
        tool=_tool(span, held),
        arguments=_value(held, *_ARGUMENTS),
        result=_value(
            held, "gen_ai.tool.call.result", "tool_response", "output.value", "traceloop.entity.output"
        )
        or "",
        failed="ERROR" in str(dig(span, "status.code") or dig(span, "status.status_code"))
        or dig(span, "status.code") == 2,
        said=tuple(_said(span, held)),
    )


def _kind(span: Mapping[str, Any], held: Mapping[str, Any]) -> Kind:
    kind = _named_kind(held)
    named = "gen_ai.tool.name" in held or "tool.name" in held
    return "other" if kind == "tool" and not named and is_around_tools(str(span.get("name"))) else kind


def _named_kind(held: Mapping[str, Any]) -> Kind:
    for name in _KIND_NAMES:
        if isinstance(held.get(name), str) and (kind := _KINDS.get(held[name].lower())) is not None:
            return kind
    if "gen_ai.tool.name" in held and "gen_ai.tool.call.id" in held:
        return "tool"
    return "model" if "gen_ai.output.messages" in held else "other"


def _tool(span: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    name = either(held, "gen_ai.tool.name", "tool.name", "traceloop.entity.name") or span.get("name")
    return "" if name is None else tool_in(str(name)) or str(name)


def _said(span: Mapping[str, Any], held: Mapping[str, Any]) -> Iterator[Any]:
    """The messages of a model's answer, in the attribute, in the events, or in numbered attributes."""
    found = _value(held, "gen_ai.output.messages")
    events = [event for event in span.get("events") or () if isinstance(event, dict)]
    for event in events:
        inside = _attributes(event)
        if found is None and event.get("name") == "gen_ai.client.inference.operation.details":
            found = _value(inside, "gen_ai.output.messages")
    if isinstance(found, list):
        yield from (message for message in found if is_message(message))
        return
    for event in events:
        if event.get("name") == "gen_ai.choice":
            yield from _choice(event)
    numbered = [
        _numbered(held, prefix) for prefix in ("gen_ai.completion.0", "llm.output_messages.0.message")
    ]
    yield from ({"role": "assistant", **message} for message in numbered if message)
    if not any(numbered) and not events and "openinference.span.kind" in held:
        answer = _value(held, "output.value")
        words = [] if answer is None else [{"role": "assistant", "content": text_of(answer)}]
        yield from messages_of_answer(answer) or words


def _choice(event: Mapping[str, Any]) -> Iterator[Any]:
    """The message of an older event."""
    inside = _attributes(event)
    body = _value(inside, "gen_ai.event.content", "body") or event.get("body") or inside
    message = _value(body, "message") if isinstance(body, dict) else None
    if isinstance(message, dict):
        yield {"role": "assistant", **message}
    elif isinstance(body, dict) and ({"content", "tool_calls"} & body.keys()):
        calls = _value(body, "tool_calls")
        yield {"role": "assistant", "content": body.get("content"), "tool_calls": calls}
    elif (messages := messages_of_answer(body)) is not None:
        yield from messages


def _numbered(held: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """A message assembled from attributes such as ``gen_ai.completion.0.tool_calls.0.name``."""
    message: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    for key, value in held.items():
        if not key.startswith(prefix + "."):
            continue
        rest = key[len(prefix) + 1 :]
        if rest.startswith("tool_calls."):
            number, _, name = rest.removeprefix("tool_calls.").partition(".")
            calls.setdefault(number, {})[name.rpartition(".")[2]] = value
        elif rest in ("content", "role"):
            message[rest] = value
        elif rest.startswith("contents.") and rest.endswith(".text") and isinstance(value, str):
            message["content"] = f"{message.get('content') or ''}{value}"
    if calls:
        message["tool_calls"] = [calls[number] for number in sorted(calls)]
    return message


def _evaluations(spans: Sequence[Any], attributes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """(path, value) of each evaluation."""
    events = (
        _attributes(event) for span in spans for event in span.get("events") or () if isinstance(event, dict)
    )
    for held in (*attributes, *events):
        value = either(held, "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label")
        if (name := held.get("gen_ai.evaluation.name")) is not None and value is not None:
            yield f"{_EVALUATION}{name}", value


def _attributes(held: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by name. OTLP writes them as a list of keys with typed values."""
    attributes = held.get("attributes")
    if isinstance(attributes, dict):
        return attributes
    if not isinstance(attributes, list):
        return {}
    return {
        each["key"]: _typed(each.get("value"))
        for each in attributes
        if isinstance(each, dict) and isinstance(each.get("key"), str)
    }


def _typed(value: Any) -> Any:
    """A value without OTLP's wrapping."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, inside),) = value.items()
    kind = kind.replace("_", "").lower()
    if kind == "arrayvalue":
        return [_typed(each) for each in _listed(inside, "values") or ()]
    if kind == "kvlistvalue":
        return _attributes({"attributes": _listed(inside, "values") or []})
    if kind == "intvalue" and isinstance(inside, str) and inside.lstrip("-").isdecimal() and len(inside) < 25:
        return int(inside)
    return inside if kind.endswith("value") else value


def _start(span: Mapping[str, Any]) -> int:
    """Span start in nanoseconds; a float of seconds would merge nearby spans."""
    found = either(span, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
    if isinstance(found, str) and found.isdecimal() and len(found) < 25:
        found = int(found)
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 10**24:
        return found
    moment = seconds(found)
    return 0 if moment is None or abs(moment) > 1e14 else round(moment * 1e9)


def _value(held: Mapping[str, Any], *names: str) -> Any:
    """The first value of some names; a JSON text is read."""
    return unfolded(either(held, *names))


def _named(attributes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    values = (held[name] for name in names for held in attributes if isinstance(held.get(name), str | int))
    return str(next(values, ""))[:200]


def _listed(held: Any, *names: str) -> list[Any] | None:
    value = either(held, *names)
    return value if isinstance(value, list) else None
