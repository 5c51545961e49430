"""Behaviour of chat-completions servers, as reported in public threads: what each sends in place of a good
answer.

One fake server (``chat_server.py``) plays every behaviour. ``SAME`` must end in the episodes of a good
server, ``STEPS`` in steps that say why they have no action, ``LINES`` in one clear line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.rollouts.chat_server import Answered, Manner, Sent

AT_ONCE = 16
Good = dict[str, Any]


def at_first(sent: Sent | Callable[[Good], Sent]) -> Manner:
    """Sends this to the first requests, as many as are open at once, and behaves well from then on."""
    return lambda number, body, good: _made(sent, good) if number <= AT_ONCE else good


def always(sent: Sent | Callable[[Good], Sent]) -> Manner:
    """Never behaves well."""
    return lambda number, body, good: _made(sent, good)


def _made(sent: Sent | Callable[[Good], Sent], good: Good) -> Sent:
    return sent(good) if callable(sent) else sent


def error(status: int, message: str = "no", **fields: Any) -> Answered:
    """An error in OpenAI's form."""
    return status, {}, {"error": {"message": message, "type": "t", "param": None, "code": None, **fields}}


def told(message: str, **fields: Any) -> dict[str, Any]:
    """The body of an error that has a message and these fields alone."""
    return {"error": {"message": message, **fields}}


def flat(message: str, **fields: Any) -> dict[str, Any]:
    """The body of an error that is not inside a field."""
    return {"object": "error", "message": message, **fields}


def refuses(name: str, *said: Any, status: int = 400) -> Manner:
    """A server that refuses a parameter with an error."""
    return lambda number, body, good: (status, {}, said[0]) if name in body else good


def message(good: Good, finish: Any = "stop", **fields: Any) -> Good:
    """The completion with other fields in its message."""
    return {
        **good,
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **fields}}],
    }


def content(good: Good) -> str:
    """The content of the model's message."""
    return str(good["choices"][0]["message"]["content"])


def split(good: Good) -> tuple[str, str]:
    """(thought, what comes after it)."""
    thought, _, rest = content(good).removeprefix("<think>").partition("</think>")
    return thought, rest


def parts(*texts: str) -> list[dict[str, str]]:
    """Content as parts of text."""
    return [{"type": "text", "text": text} for text in texts]


def events(*chunks: Any) -> Sent:
    """A stream of chunks."""
    lines = [f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n" for chunk in chunks]
    return 200, {"Content-Type": "text/event-stream"}, ": processing\n\n" + "".join(lines)


def streamed(good: Good) -> Sent:
    """The completion as a stream, a few characters at a time."""
    text = content(good)
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
    deltas = [
        {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces
    ]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return events(*deltas, last, {"choices": [], "usage": good["usage"]}, "[DONE]")


def streamed_with_gaps(good: Good) -> Sent:
    """The completion as a stream whose last piece names the content and has none."""
    first = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": content(good)}}]}
    last = {"choices": [{"index": 0, "delta": {"role": None, "content": None}, "finish_reason": "stop"}]}
    return events(first, last, "[DONE]")


def broken_off(good: Good) -> Iterator[bytes]:
    """The beginning of an answer; then the connection is reset."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n" + b'{"choices"'


def dripping(good: Good) -> Iterator[bytes]:
    """A byte of the headers now and then, longer than any deadline."""
    yield b"HTTP/1.1 200 OK\r\nX-Slow: "
    for _ in range(200):
        time.sleep(0.05)
        yield b"."


OPENAI_TEMPERATURE = error(
    400, "Unsupported value: 'temperature' does not support 0.4 with this model. Only the default (1) value "
    "is supported.", param="temperature", code="unsupported_value",
)[2]  # fmt: skip
ANTHROPIC_BOTH = error(
    400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    type="invalid_request_error", code="invalid_request_error",
)[2]  # fmt: skip
FORBIDDEN = "Extra inputs are not permitted"
PYDANTIC_SEED = {
    "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": FORBIDDEN, "input": 7}]
}
PYDANTIC_QUOTED = flat(json.dumps(PYDANTIC_SEED), type="internal_error_proxy", code="1000")
GEMINI = [told('Invalid JSON payload received. Unknown name "top_k": Cannot find field.', code=400)]
LITELLM = told(
    "litellm.UnsupportedParamsError: openai does not support parameters: ['top_k'], for model=m. ",
    type=None, code="400",
)  # fmt: skip
NEWER_LIMIT = error(
    400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
    "instead.", param="max_tokens", code="unsupported_parameter",
)[2]  # fmt: skip
NONSENSE = {"prompt_tokens": "ten", "completion_tokens": -3, "total_tokens": None}
SAME: Mapping[str, Manner] = {
    "good": always(lambda good: good),
    "an upstream failure in a 200": at_first(told("Provider returned error", code=502)),
    "an error in words in a 200": at_first({"error": "Model unloaded."}),
    "an error beside choices": at_first(
        lambda good: {**good, "choices": [], "error": {"message": "overloaded"}}
    ),
    "an error inside the choice": at_first(
        {"choices": [{"finish_reason": "error", "message": {"content": ""}, "error": {"code": 502}}]}
    ),
    "finish reason error": at_first(lambda good: message(good, "error", content="")),
    "choices null": at_first(lambda good: {**good, "choices": None}),
    "choices empty": at_first(lambda good: {**good, "choices": []}),
    "no choices": at_first({}),
    "message null": at_first({"choices": [{"index": 0, "finish_reason": "stop", "message": None}]}),
    "an empty body": at_first((200, {}, "")),
    "a page": at_first((200, {"Content-Type": "text/html"}, "<html>Just a moment...</html>")),
    "half an answer": at_first((200, {}, '{"choices": [')),
    "brackets without end": at_first((200, {}, "[" * 100_000)),
    "a reset in mid-answer": at_first(broken_off),
    "drops of a byte": at_first(dripping),
    "loading": at_first(error(503, "Loading model", code=503, type="unavailable_error")),
    "a gateway's time-out": at_first((504, {}, "<html>The request took too long to process</html>")),
    "a deadline of its own": at_first(error(500, "context deadline exceeded")),
    "too many requests": at_first((429, {"Retry-After": "0"}, {"error": "Too many requests"})),
    "a rate limit in a 200": at_first(told("slow down", code=429)),
    "overloaded": at_first(error(529, "Overloaded", type="overloaded_error")),
    "a limit on tokens, in a 200": at_first(
        {"error": {"message": "Rate limit: input tokens per minute exceeded"}}
    ),
    "a prompt that waited": at_first(error(503, "Your prompt was queued for too long")),
    "a late prompt": at_first(error(504, "prompt processing took longer; it is too long ago")),
    "a filter that is away": at_first(
        error(500, "The safety system is temporarily unavailable; no content policy was applied")
    ),
    "no room": at_first(error(498, "Flex tier capacity exceeded")),
    "a client that a gateway lost": at_first((499, {}, "")),
    "finish reason server_error": at_first(lambda good: message(good, "server_error", content="")),
    "an error that says nothing": always(lambda good: {**good, "error": {"message": "", "code": None}}),
    "a thought that the prompt opened": always(
        lambda good: message(good, content=content(good).removeprefix("<think>"))
    ),
    "a stream": always(streamed),
    "a stream with gaps": always(streamed_with_gaps),
    "a stream that breaks off": at_first(events({"choices": [{"delta": {"content": "<th"}}]})),
    "a stream with an error": at_first(events(told("worker died", code=500))),
    "no usage": always(lambda good: {name: value for name, value in good.items() if name != "usage"}),
    "usage null": always(lambda good: {**good, "usage": None}),
    "usage of one count": always(lambda good: {**good, "usage": {"prompt_tokens": 10}}),
    "usage without sense": always(lambda good: {**good, "usage": NONSENSE}),
    "usage of another kind": always(lambda good: {**good, "usage": [1, 2]}),
    "parts": always(lambda good: message(good, content=parts(content(good)[:9], content(good)[9:]))),
    "a part of thinking": always(
        lambda good: message(
            good, content=[{"type": "thinking", "thinking": parts(split(good)[0])}, *parts(split(good)[1])]
        )
    ),
    "parts of unknown types": always(
        lambda good: message(
            good, content=[{"type": "audio", "data": "x"}, None, 7, {"type": "text", "text": content(good)}]
        )
    ),
    "reasoning_content": always(
        lambda good: message(good, reasoning_content=split(good)[0], content="\n\n" + split(good)[1])
    ),
    "reasoning": always(lambda good: message(good, reasoning=split(good)[0], content=split(good)[1])),
    "all of it in reasoning": always(
        lambda good: message(good, reasoning_content=content(good), content=None)
    ),
    "no finish reason": always(lambda good: message(good, None, content=content(good))),
    "a finish reason of its own": always(lambda good: message(good, "eos_token", content=content(good))),
    "a refusal that is empty": always(lambda good: message(good, content=content(good), refusal="")),
    "a choice of text": always(
        lambda good: {**good, "choices": [{"text": content(good), "finish_reason": "stop"}]}
    ),
    "another model's name": always(lambda good: {**good, "model": "toy-2026-01-01"}),
    "log-probabilities that are none": always(
        lambda good: (
            200,
            {},
            json.dumps({**good, "choices": [{**good["choices"][0], "logprobs": float("nan")}]}),
        )
    ),
    "a byte order mark": always(lambda good: (200, {}, "\ufeff" + json.dumps(good))),
    "a long answer": always(lambda good: message(good, content=content(good) + " " * 200_000)),
    "max_tokens has a newer name": refuses("max_tokens", NEWER_LIMIT),
    "the newer name, in words alone": refuses("max_tokens", {"error": NEWER_LIMIT["error"]["message"]}),
    "temperature is fixed": refuses("temperature", OPENAI_TEMPERATURE),
    "temperature or top_p": lambda number, body, good: (
        (400, {}, ANTHROPIC_BOTH) if {"temperature", "top_p"} <= body.keys() else good
    ),
    "seed is forbidden": refuses("seed", PYDANTIC_SEED, status=422),
    "seed is forbidden, quoted": refuses("seed", PYDANTIC_QUOTED, status=422),
    "top_k is unknown": refuses("top_k", GEMINI),
    "top_k is not supported behind a gateway": refuses("top_k", LITELLM),
    "top_k has another spelling": refuses("top_k", error(400, "extraneous key [topK] is not permitted")[2]),
    "temperature, in a contraction": refuses(
        "temperature", error(400, "This model doesn't support the temperature parameter.")[2]
    ),
    "temperature is 1": refuses(
        "temperature", error(400, "`temperature` may only be set to 1 when thinking is enabled.")[2]
    ),
    "seed is gone": refuses("seed", error(400, "seed is no longer supported")[2]),
    "the newer name, as advice": refuses(
        "max_tokens", error(400, "Please use max_completion_tokens instead of max_tokens")[2]
    ),
    "a refusal in a 200": refuses(
        "seed", {"error": {"message": "property 'seed' is unsupported"}}, status=200
    ),
    "nothing but the prompt": lambda number, body, good: next(
        (
            (400, {}, {"error": {"message": f"Unrecognized request argument supplied: {name}"}})
            for name in ("seed", "top_k", "top_p", "temperature")
            if name in body
        ),
        good,
    ),
}
