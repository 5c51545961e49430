"""A program's requests and the model's replies, in one form for all dialects. The trainer controls sampling:
temperature, top-p, top-k and the seed of a request are ignored. Two settings are honoured, because they only
stop a response early and so leave its tokens on-policy: ``max_tokens`` below ours, and ``stop``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import orjson

from skillpress.core.chat_messages import Message, ToolCall
from skillpress.core.errors import PolicyError
from skillpress.core.trajectory import Kind, WeightSpan

Finish = Literal["stop", "length", "tool_calls", "content_filter"]
"""``content_filter``: a model behind a URL, or a filter around it, declined."""


@dataclass(frozen=True)
class ModelRequest:
    """One request for a response."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools in the form of chat completions: ``{"type": "function", "function": {...}}``."""
    max_tokens: int | None = None
    """Maximum number of tokens that the program wants; None if it names no limit."""
    stop: tuple[str, ...] = ()
    """A response ends with the token that completes one of these texts."""
    number: int = 1
    """Number of responses that it wants (``n``); each gets its own record."""
    overruled: tuple[str, ...] = field(default=(), compare=False)
    """The fields of the body that have no effect: sampling settings, which the trainer controls, and fields
    unknown to the endpoint."""
    call_kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """Maps a tool that is not a plain function to the additional fields of its calls in an answer: ``{"type":
    "custom"}`` or ``{"namespace": ...}``; only in the form of responses."""

    @cached_property
    def digest(self) -> str:
        """A hash of everything that determines the response: messages, tools, limits. Ids of calls do not
        count, because clients draw them at random.
        """
        said = [
            [m.role, m.content, m.thought, [[c.name, c.arguments] for c in m.calls]] for m in self.messages
        ]
        text = json.dumps([said, self.tools, self.max_tokens, self.stop], sort_keys=True, ensure_ascii=True)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    @cached_property
    def size(self) -> int:
        """Number of characters that the model sees: messages, calls and tools."""
        shown = [[m.content, m.thought, [[c.name, c.arguments] for c in m.calls]] for m in self.messages]
        return len(json.dumps([shown, self.tools], ensure_ascii=False))

    def cut(self, text: str) -> str:
        """A response's text before the first stop text, which the program does not see."""
        return text[: min((text.find(stop) for stop in self.stop if stop in text), default=len(text))]


@dataclass(frozen=True)
class Reply:
    """The model's response to one request, read from its tokens."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    finish: Finish = "stop"
    prompt_tokens: int = 0
    response_tokens: int = 0
    weights: tuple[WeightSpan, ...] = ()
    """Which weights sampled which tokens."""
    refused: str = ""
    """Why the model was not asked: the name of the reason, a colon, and the message for the program; empty
    for a response."""

    def as_action(self) -> str:
        """The reply as the text of an action: JSON with the content and the calls, and nothing that differs
        between two equal responses."""
        found: dict[str, Any] = {"content": self.content}
        if self.calls:
            found["calls"] = [{"tool": call.name, "arguments": dict(call.arguments)} for call in self.calls]
        return json.dumps(found, ensure_ascii=False)

    def __str__(self) -> str:
        """The full reply as JSON, which is the record of a refused one."""
        return orjson.dumps(asdict(self)).decode()


@dataclass(frozen=True)
class Asked:
    """A request in its place in the episode; the state in which the agent decides."""

    request: ModelRequest
    occurrence: int
    """Number of equal requests that the episode made before."""
    beside: Callable[[], Sequence[Asked]] = field(default=tuple, compare=False, repr=False)
    """Returns the episode's other open requests, in the order of their turns."""
    side: str = ""
    """Name of a side call, such as ``title``; empty for the program's own work."""

    @property
    def kind(self) -> Kind:
        """The kind of its step."""
        return "side" if self.side else "action"

    @property
    def draw(self) -> str:
        """Determines the response's seed, together with the episode's seed; the order of arrival does not
        matter.
        """
        return f"{self.request.digest}/{self.occurrence}"


class UnshownConversationError(PolicyError):
    """The model's chat template cannot show a conversation, such as one with two successive user turns."""


class RefusedRequestError(ValueError):
    """The endpoint does not serve a request; the program receives the reason."""

    def __init__(
        self, message: str, field: str = "", code: str = "unsupported_parameter", status: int = 400
    ) -> None:
        super().__init__(message)
        self.message, self.field, self.code, self.status = message, field, code, status


def added(messages: Sequence[Message], before: Sequence[Sequence[Message]]) -> Sequence[Message]:
    """The messages after the longest earlier conversation with which these begin; all if there is none. The
    model's own answer, which follows an earlier conversation, does not count as added.

    Ids of calls do not count.
    """
    mine = [_alike(message) for message in messages]
    # The longest come first: a program usually goes on from its last call, so one comparison is enough.
    shorter = sorted((other for other in before if len(other) <= len(mine)), key=len, reverse=True)
    begins = (len(other) for other in shorter if mine[: len(other)] == [_alike(each) for each in other])
    longest = next(begins, 0)
    rest = messages[longest:]
    return rest[1:] if longest and rest and rest[0].role == "assistant" else rest


def _alike(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, tuple((call.name, dict(call.arguments)) for call in message.calls)


def as_text(messages: Sequence[Message]) -> str:
    """Messages as the text of an observation: contents, each after its role unless it is alone."""
    if len(messages) == 1:
        return messages[0].content
    return "\n".join(f"{message.role}: {message.content}" for message in messages)
