"""Shared by the forms: reading texts, arguments, limits and choices, and refusing what none supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from skillpress.core.chat_messages import LEVELS, WORDS, Message, can_be_sent
from skillpress.core.errors import did_you_mean
from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError

PENALTIES = ("presence_penalty", "frequency_penalty", "repetition_penalty")
HEARD = {
    "messages", "input", "instructions", "system", "tools", "functions", "n", "stop", "stop_sequences",
    "max_tokens", "max_completion_tokens", "max_output_tokens", "model", "stream", "stream_options", "store",
    "logit_bias", "logprobs", "top_logprobs", "response_format", "text", "output_config", *PENALTIES,
}  # fmt: skip
"""Fields that are read, or refused if they would change the answer. Other fields have no effect, and the
answer says so."""


def text_of(content: Any, where: str) -> str:
    """The text of a content, which is a text or a list of text parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part(part, where) for part in content)
    raise RefusedRequestError(
        f"{where}: is a {type(content).__name__}, must be a text or a list of parts", where, "invalid_value"
    )


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in WORDS and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind == "refusal":
        return str(part.get("refusal") or "")
    raise RefusedRequestError(
        f"{where}: has a part of type {kind!r}; this endpoint supports only text, no images or files", where
    )


def listed(body: Mapping[str, Any], field: str) -> Sequence[Any]:
    """A field that must be a non-empty list."""
    value = body.get(field)
    if isinstance(value, list) and value:
        return value
    near = did_you_mean(field, list(body))
    raise RefusedRequestError(f"{field}: must be a list with at least one item{near}", field, "invalid_value")


def refuse_wishes(body: Mapping[str, Any]) -> None:
    """Refuse settings that would change the distribution of responses.

    Raises:
        RefusedRequestError: the request forces a tool or a format, biases or penalises tokens, or asks for
            log-probabilities.
    """
    choice = body.get("tool_choice")
    forced = isinstance(choice, Mapping) and choice.get("type") not in ("auto", "any", "none", "required")
    if forced:
        raise RefusedRequestError(
            "tool_choice forces a tool, which would make the policy's tokens off-policy; leave it out",
            "tool_choice",
        )
    for field in ("response_format", "text", "output_config"):
        wanted = body.get(field)
        wanted = wanted.get("format", wanted) if isinstance(wanted, Mapping) else wanted
        kind = wanted.get("type", "text") if isinstance(wanted, Mapping) else wanted
        if kind not in (None, "text"):
            raise RefusedRequestError(
                f"{field} {kind!r} would constrain the policy's tokens; ask for text", field
            )
    if body.get("logit_bias"):
        raise RefusedRequestError(
            "logit_bias: the trainer controls sampling; leave this field out", "logit_bias"
        )
    for field in PENALTIES:
        if body.get(field) not in (None, 0, 0.0, *((1, 1.0) if field.startswith("rep") else ())):
            raise RefusedRequestError(f"{field}: the trainer controls sampling; leave this field out", field)
    if body.get("logprobs") or body.get("top_logprobs"):
        raise RefusedRequestError(
            "logprobs are not sent, because this endpoint keeps them for the trainer", "logprobs"
        )


def takes_tools(body: Mapping[str, Any]) -> bool:
    """Whether the model sees the request's tools; it does not if the request forbids all calls."""
    choice = body.get("tool_choice")
    return (choice.get("type") if isinstance(choice, Mapping) else choice) != "none"


def whole(body: Mapping[str, Any], *fields: str) -> int | None:
    """The first of these fields that is present, as a positive number."""
    for field in fields:
        value = body.get(field)
        if value is None:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        raise RefusedRequestError(
            f"{field}: is {value!r}, must be a positive whole number", field, "invalid_value"
        )
    return None


def stops(value: Any, field: str) -> tuple[str, ...]:
    """Texts that end a response."""
    found = [value] if isinstance(value, str) else value or []
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise RefusedRequestError(
            f"{field}: is {value!r}, must be a text or a list of texts", field, "invalid_value"
        )
    return tuple(text for text in found if text)


def request_of(
    body: Mapping[str, Any],
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    max_tokens: int | None,
    stop: tuple[str, ...],
) -> ModelRequest:
    """The request, after the settings that all forms share were checked."""
    refuse_wishes(body)
    return ModelRequest(
        tuple(_one_system_message(messages)),
        tuple(_tools(tools)) if takes_tools(body) else (),
        max_tokens=max_tokens,
        stop=stop,
        number=whole(body, "n") or 1,
        overruled=tuple(sorted(_without_effect(body))),
    )


def _without_effect(body: Mapping[str, Any]) -> Iterator[str]:
    """The fields that are set but have no effect: sampling settings, and unknown fields."""
    for field, value in body.items():
        if field == "tool_choice" and value in ("auto", "none"):
            continue
        empty = value is None or value is False or value in ("", [], {})
        if field not in HEARD and not empty:
            yield str(field)
    for field in ("text", "output_config"):  # their format is refused, the rest is not heard
        inside = body.get(field)
        if isinstance(inside, Mapping):
            yield from (f"{field}.{name}" for name in inside if name != "format")


def _one_system_message(messages: Sequence[Message]) -> Sequence[Message]:
    """Merge all system messages into one at the beginning, because many chat templates show or allow only the
    first.
    """
    first = list(takewhile(lambda message: message.role == "system", messages))
    if len(first) < 2:
        return messages
    joined = Message("system", "\n\n".join(message.content for message in first if message.content))
    return [joined, *messages[len(first) :]]


def _tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Tools in the form of chat completions, as a chat template can show them."""
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RefusedRequestError(
                f"tools[{number}]: must be a function with a name", "tools", "invalid_value"
            )
        if not can_be_sent(function):
            raise RefusedRequestError(
                f"tools[{number}]: has more than {LEVELS} levels, or a number that JSON cannot carry",
                "tools",
                "invalid_value",
            )
        yield tool


def event(data: str, name: str = "") -> str:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "") + f"data: {data}\n\n"


def vendor_error(refused: RefusedRequestError) -> dict[str, Any]:
    """The error's body in the form of chat completions and responses."""
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    return {
        "error": {
            "message": refused.message,
            "type": kind,
            "param": refused.field or None,
            "code": refused.code,
        }
    }
