"""Read the reply to a chat completion.

Besides the plain protocol, this module recognises errors in replies with HTTP 200, content as a list of
parts, reasoning under ``reasoning_content``, ``reasoning`` or in parts, refusals, tool calls, streams that
were not requested, and usage that is missing or implausible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any

from skillpress.core.chat_messages import THOUGHTS, holds_thought
from skillpress.core.markup import THOUGHT, THOUGHT_END, behind_thought
from skillpress.rollouts.chat.connection import ServerReply
from skillpress.rollouts.chat.outcomes import Ended, Failed, ModelAnswer, Outcome, TokenUsage, readable
from skillpress.rollouts.chat.refusals import error_of, read_error

CUT_OFF = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
REFUSED = frozenset(
    {
        "content_filter", "content-filter", "refusal", "safety", "recitation", "blocklist",
        "prohibited_content", "spii", "sensitive", "guardrail_intervened",
    }
)  # fmt: skip
BROKEN = frozenset(
    {
        "error", "abort", "aborted", "cancelled", "failed", "timeout", "server_error", "internal_error",
        "engine_error", "insufficient_system_resource", "network_error",
    }
)  # fmt: skip
"""Finish reasons, in lower case. With those of ``BROKEN`` a server says that it could not continue. All other
reasons, and none, mean that the model stopped by itself."""

TEXTS = ("text", "content", "value")
"""Fields of a part that may hold its text."""
DEEPEST = 8
"""Maximum depth of nested parts that is read."""
MOST_TOKENS = 1 << 40
"""A server that reports more tokens has miscounted, and sums of such counts would not fit into any column."""
NOT_JSON, BROKEN_OFF, DONE = object(), object(), object()
"""A body other than JSON, a stream without its end, and the event that ends a stream."""
LINE_END = re.compile("\r\n|\n|\r")
ERROR_EVENT = re.compile(r"event:\s*error")


def read_reply(reply: ServerReply, sent: Mapping[str, Any]) -> Outcome:
    """The outcome of a reply; ``sent`` are the request's parameters, apart from model and messages."""
    found = parsed(reply.body)
    if reply.status // 100 != 2 or error_of(found) is not None:
        return read_error(reply, found, sent)
    if found is BROKEN_OFF:
        return Failed(f"HTTP {reply.status} with a stream that broke off: no finish_reason and no [DONE]")
    if not isinstance(found, Mapping):
        return Failed(
            f"HTTP {reply.status}, but {_described(reply.body, found)}", foreign=bool(reply.body.strip())
        )
    if "choices" not in found:
        outcome = read_error(reply, found, sent)
        return replace(outcome, foreign=True) if isinstance(outcome, Failed) else outcome
    choice = _first(found["choices"])
    if choice is None:
        return Failed("HTTP 200 without an answer (no choices)")
    if (error := error_of(choice)) is not None:
        return read_error(reply, {"error": error}, sent)
    return _answer(choice, _usage(found.get("usage")))


def parsed(body: bytes) -> Any:
    """The JSON value of a body, ``NOT_JSON``, or ``BROKEN_OFF``. A stream's chunks are merged first."""
    text = body.decode("utf-8-sig", errors="replace")
    value = _value(text)
    if value is not NOT_JSON:
        return value
    lines = [line.strip() for line in LINE_END.split(text)]
    return _put_together(_events(lines)) if any(line.startswith("data:") for line in lines) else NOT_JSON


def _events(lines: Iterable[str]) -> Iterator[Any]:
    """The JSON values of a stream's events, ``DONE`` or ``NOT_JSON``.

    An empty line ends an event, whose ``data`` lines belong together. Some servers leave out the empty lines;
    then every line is an event. Events without data keep a connection open.
    """
    for filled, block in groupby(lines, key=bool):
        fields = list(block) if filled else []
        data = [line.removeprefix("data:").strip() for line in fields if line.startswith("data:")]
        texts = [text for text in data if text]
        values = [_value(text) for text in texts]
        if any(value is NOT_JSON for value in values):
            values = [_value("\n".join(texts))]
        if any(ERROR_EVENT.fullmatch(line) for line in fields):
            values = [
                value if error_of(value) is not None else {"error": "\n".join(texts)} for value in values
            ]
        yield from values


def _value(text: str) -> Any:
    if text == "[DONE]":
        return DONE
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOT_JSON


def _put_together(events: Iterable[Any]) -> Any:
    """The completion made of these chunks; ``BROKEN_OFF`` if the last one is missing."""
    choices: dict[int, dict[str, list[Any]]] = {}
    finishes: dict[int, Any] = {}
    usage, ended, other = None, False, None
    for chunk in events:
        if chunk is DONE:
            ended = True
            continue
        if not isinstance(chunk, Mapping) or error_of(chunk) is not None:
            return chunk
        other = chunk if "choices" not in chunk else other
        usage = chunk.get("usage") or usage
        for choice in _mappings(chunk.get("choices")):
            if error_of(choice) is not None:
                return choice
            place = _index(choice)
            parts = choices.setdefault(place, {})
            _add(choice, parts)
            usage = choice.get("usage") or usage
            finishes[place] = choice.get("finish_reason") or finishes.get(place)
    first = min(choices, default=0)
    finish = finishes.get(first)
    if not (ended or finish or (usage and choices)):
        return BROKEN_OFF
    if not choices:
        return {"error": other} if other else {"choices": []}
    message = {"content": ""} if finish else {}
    message |= {name: _joined(values) for name, values in choices[first].items() if name != "role"}
    if isinstance(calls := message.get("tool_calls"), list):
        message["tool_calls"] = _whole_calls(calls)
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def _add(choice: Mapping[str, Any], parts: dict[str, list[Any]]) -> None:
    """Add a chunk's piece to those before it. A ``message`` is the whole answer."""
    delta, message = _mapping(choice, "delta"), _mapping(choice, "message")
    if isinstance(choice.get("text"), str):  # the older completions
        parts.setdefault("content", []).append(choice["text"])
    for name, value in (delta or {}).items():
        parts.setdefault(name, []).append(value)
    if message and not delta:
        parts.update({name: [value] for name, value in message.items()})


def _first(choices: Any) -> Mapping[str, Any] | None:
    """The choice with the lowest index, wherever it is in the list; None if there is none."""
    found = _mappings(choices)
    if not found or not isinstance(choices[0], Mapping):
        return None
    return min(found, key=_index)


def _index(choice: Mapping[str, Any]) -> int:
    """A choice's number, which some servers write as a text; 0 if it states none."""
    index = str(choice.get("index"))
    return int(index) if index.isascii() and index.isdecimal() else 0


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in a list; empty if the value is not a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _whole_calls(deltas: Sequence[Any]) -> list[dict[str, Any]]:
    """The calls of all chunks: pieces with the same index are one call, whose texts are joined."""
    found: dict[str, dict[str, Any]] = {}
    for delta in deltas:
        if not isinstance(delta, Mapping):
            continue
        call = found.setdefault(repr(delta.get("index", len(found))), {"function": {}})
        call.update({name: delta[name] for name in ("id", "type") if delta.get(name)})
        said, function = call["function"], _mapping(delta, "function") or {}
        for name in ("name", "arguments"):
            more, before = function.get(name), said.get(name)
            joins = isinstance(more, str) and isinstance(before, str)
            said[name] = before + more if joins else more if more is not None else before
    return list(found.values())


def _joined(values: Sequence[Any]) -> Any:
    """One field of all chunks: texts and lists are joined, otherwise the last value counts."""
    said = [value for value in values if value is not None]
    if said and all(isinstance(value, str) for value in said):
        return "".join(said)
    if said and all(isinstance(value, list) for value in said):
        return list(chain.from_iterable(said))
    return said[-1] if said else None


def _answer(choice: Mapping[str, Any], usage: TokenUsage) -> ModelAnswer | Failed:
    message = _mapping(choice, "message") or _mapping(choice, "delta")
    if message is None and isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}
    if message is None:
        return Failed("HTTP 200 without an answer (a choice without a message)")
    reason = choice.get("finish_reason")
    finish = str((reason.get("type") if isinstance(reason, Mapping) else reason) or "").lower()
    if finish in BROKEN:
        return Failed(f"HTTP 200 with finish_reason {finish!r}")
    text, inner, declined = _content(message.get("content"))
    thought = next(filter(None, (_text(message.get(name)) for name in THOUGHTS)), inner)
    declined = _text(message.get("refusal")) or declined
    call = message.get("tool_calls") or message.get("function_call")
    if not text.strip() and THOUGHT_END in thought:
        # A server that separates reasoning took the whole answer for reasoning, since no "<think>" came
        # first.
        text, thought = thought, ""
    if THOUGHT_END in text and THOUGHT not in text.partition(THOUGHT_END)[0]:
        text = THOUGHT + text  # the prompt has opened the thought, and the server does not separate it
    told, spoken = behind_thought(text)
    silent = spoken is not None and not spoken.strip()
    ended: Ended = "whole"
    if finish in CUT_OFF:
        ended = "cut_off"
    elif finish in REFUSED or (declined and text.strip() in ("", declined.strip())):
        ended, thought = "refused", declined or thought
    elif call and silent:
        ended, thought = "tool_call", thought or told
    return ModelAnswer(readable(text), readable(thought), ended=ended, usage=usage, calls=call or None)


def _content(content: Any) -> tuple[str, str, str]:
    """Return (text, reasoning, refusal) of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content, "", ""
    found = {"text": "", "thought": "", "refusal": ""}
    for part in content if isinstance(content, list) else [content]:
        kind = str(part.get("type") or "") if isinstance(part, Mapping) else ""
        if holds_thought(kind):
            found["thought"] += _text(part)
        elif kind == "refusal":
            found["refusal"] += _text(part.get("refusal"))
        else:
            found["text"] += _text(part, TEXTS)
    return found["text"], found["thought"], found["refusal"]


def _text(value: Any, fields: tuple[str, ...] = (*THOUGHTS, "summary", *TEXTS), depth: int = 0) -> str:
    """The text of a string, of a list of parts, or of a mapping's first field that has one."""
    if isinstance(value, str):
        return value
    if depth == DEEPEST:
        return ""
    if isinstance(value, list):
        return "".join(_text(part, fields, depth + 1) for part in value)
    if isinstance(value, Mapping):
        return next(filter(None, (_text(value.get(name), fields, depth + 1) for name in fields)), "")
    return ""


def _usage(found: Any) -> TokenUsage:
    """The counts under the names of chat completions, or under the newer names that some servers use."""
    if not isinstance(found, Mapping):
        return TokenUsage()
    first, second = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
    return TokenUsage(
        *(_count(next((found[n] for n in names if n in found), None)) for names in (first, second))
    )


def _count(value: Any) -> int | None:
    """The number of tokens; None for a value that cannot be a count."""
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS
    return value if counts else None


def _mapping(choice: Any, name: str) -> Mapping[str, Any] | None:
    value = choice.get(name) if isinstance(choice, Mapping) else None
    return value if isinstance(value, Mapping) else None


def _described(body: bytes, found: Any) -> str:
    if not body.strip():
        return "an empty reply"
    if found is NOT_JSON:
        begins = body[:100].decode("utf-8", errors="replace").strip()
        return f"not JSON; it begins {begins[:60]!r}"
    return f"JSON of another kind ({type(found).__name__})"
