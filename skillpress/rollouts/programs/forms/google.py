"""Google's form: ``POST /v1beta/models/MODEL:generateContent``, and ``:streamGenerateContent`` as events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillpress.core.chat_messages import Message, call_of, tool_of
from skillpress.rollouts.programs.forms import Form
from skillpress.rollouts.programs.forms.reading import event, listed, request_of, stops, whole
from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError, Reply

HEARD = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")
SETTINGS_HEARD = ("maxOutputTokens", "stopSequences", "candidateCount")
FORMATS = ("responseSchema", "responseJsonSchema", "responseMimeType")
UNSUPPORTED = ("presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs")
FINISHES = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
STATUSES = {
    401: "UNAUTHENTICATED", 410: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}  # fmt: skip


def read(body: Mapping[str, Any]) -> ModelRequest:
    """The request of a body.

    Raises:
        RefusedRequestError: it cannot be read, or asks for something that this endpoint does not support.
    """
    body = _camel(body)
    settings = _camel(body.get("generationConfig") or {})
    _refuse_wishes(settings)
    messages = [Message("system", text)] if (text := _system(body.get("systemInstruction"))) else []
    for number, content in enumerate(listed(body, "contents")):
        messages += _messages(content, f"contents[{number}]")
    tools, dropped = _tools(body.get("tools") or ())
    # Fields without effect, under their own names.
    told = {name: value for name, value in body.items() if name not in HEARD} | dropped
    told |= {
        f"generationConfig.{name}": each for name, each in settings.items() if name not in SETTINGS_HEARD
    }
    told |= {"n": whole(settings, "candidateCount"), "tool_choice": _choice(body.get("toolConfig"))}
    return request_of(
        told,
        messages,
        tools,
        whole(settings, "maxOutputTokens"),
        stops(settings.get("stopSequences"), "stopSequences"),
    )


def _camel(told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by their names in JSON; clients may write ``system_instruction`` as well."""
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in told.items()}


def _refuse_wishes(settings: Mapping[str, Any]) -> None:
    for field in FORMATS:
        if settings.get(field) not in (None, "text/plain"):
            raise RefusedRequestError(
                f"generationConfig.{field} would constrain the policy's tokens; ask for text", field
            )
    for field in UNSUPPORTED:
        if settings.get(field):
            raise RefusedRequestError(
                f"generationConfig.{field}: the trainer controls sampling; leave this field out",
                field,
            )


def _choice(config: Any) -> str | None:
    """``tool_choice`` of the other forms."""
    calling = _camel(_camel(config or {}).get("functionCallingConfig") or {})
    if calling.get("allowedFunctionNames"):
        raise RefusedRequestError(
            "toolConfig forces a tool, which would make the policy's tokens off-policy; leave it out",
            "toolConfig",
        )
    mode = str(calling.get("mode") or "AUTO").upper()
    return {"AUTO": None, "MODE_UNSPECIFIED": None, "NONE": "none"}.get(mode, "required")


def _system(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(message.content for message in _messages(content, "systemInstruction")) if content else ""


def _messages(content: Any, where: str) -> list[Message]:
    """The messages of a content: a model's parts are one message; so is each function's result, and each text
    between results.
    """
    if not isinstance(content, Mapping) or content.get("role", "user") not in (
        "user",
        "model",
        "function",
        "system",
    ):
        raise RefusedRequestError(f"{where}: must be a content of role user or model", where, "invalid_value")
    speaker = "assistant" if content.get("role") == "model" else "user"
    found: list[Message] = []
    for part in map(_camel, content.get("parts") or ()):
        message = _message(part, speaker, where)
        last = found[-1] if found else None
        if last is not None and last.role == message.role != "tool":
            found[-1] = Message(
                last.role,
                last.content + message.content,
                calls=last.calls + message.calls,
                thought=last.thought + message.thought,
            )
        else:
            found.append(message)
    return found


def _message(part: Mapping[str, Any], speaker: Any, where: str) -> Message:
    if isinstance(part.get("text"), str):
        return (
            Message(speaker, thought=part["text"]) if part.get("thought") else Message(speaker, part["text"])
        )
    if isinstance(call := part.get("functionCall"), Mapping):
        return Message("assistant", calls=(call_of(call.get("name"), call.get("args"), call.get("id")),))
    if isinstance(result := part.get("functionResponse"), Mapping):
        return Message("tool", _result(result), answers=str(result.get("id") or result.get("name") or ""))
    kind = ", ".join(sorted(part))
    raise RefusedRequestError(
        f"{where}: has a part with {kind or 'nothing'}; this endpoint supports only text", where
    )


def _result(result: Mapping[str, Any]) -> str:
    """A function's result: the text of ``output`` if it has nothing else, or all of it as JSON."""
    told = result.get("response")
    if isinstance(told, Mapping) and list(told) == ["output"] and isinstance(told["output"], str):
        return str(told["output"])
    return json.dumps(told, ensure_ascii=False)


def _tools(tools: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """(the functions, the vendor's own tools as fields without effect)."""
    found: list[dict[str, Any]] = []
    dropped: dict[str, bool] = {}
    for tool in map(_camel, tools):
        for declared in tool.pop("functionDeclarations", None) or ():
            schema = declared.get("parametersJsonSchema") or _lower(declared.get("parameters"))
            found.append(tool_of({**declared, "parameters": schema}))
        dropped |= {f"tools.{name}": True for name in tool}
    return found, dropped


def _lower(schema: Any) -> Any:
    """A schema with the type names of JSON Schema; Google's are in capitals."""
    if isinstance(schema, list):
        return [_lower(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _lower(value)
        for name, value in schema.items()
    }


def write(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> dict[str, Any]:
    """The body of an answer, with one candidate for each reply."""
    candidates = [
        {
            "content": {"role": "model", "parts": _parts(reply)},
            "finishReason": FINISHES[reply.finish],
            "index": index,
        }
        for index, reply in enumerate(replies)
    ]
    prompt, response = replies[0].prompt_tokens, sum(reply.response_tokens for reply in replies)
    usage = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": response,
        "totalTokenCount": prompt + response,
    }
    return {"candidates": candidates, "usageMetadata": usage, "modelVersion": model, "responseId": identity}


def stream(identity: str, model: str, wanted: ModelRequest, replies: Sequence[Reply]) -> Iterator[str]:
    """The answer as one event."""
    yield event(json.dumps(write(identity, model, wanted, replies), ensure_ascii=False))


def error(refused: RefusedRequestError) -> dict[str, Any]:
    """The body of a refusal."""
    status = STATUSES.get(refused.status, "INVALID_ARGUMENT")
    return {"error": {"code": refused.status, "message": refused.message, "status": status}}


def _parts(reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"text": reply.thought, "thought": True}] if reply.thought else []
    if reply.content or not reply.calls:
        found.append({"text": reply.content})
    calls = ({"id": call.identity, "name": call.name, "args": dict(call.arguments)} for call in reply.calls)
    return [*found, *({"functionCall": call} for call in calls)]


FORM = Form(
    "/models/{model}:generateContent",
    read,
    write=write,
    stream=stream,
    error=error,
    version="/v1beta",
    stream_path="/models/{model}:streamGenerateContent",
    count_path="/models/{model}:countTokens",
    count=lambda tokens: {"totalTokens": tokens},
)
