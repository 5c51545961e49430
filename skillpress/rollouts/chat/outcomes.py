"""The possible outcomes of one question to a server.

A reply is one of three things. The model answered, well or badly: a :class:`ModelAnswer`, which becomes a
step of an episode. The server failed: :class:`Failed`, which never becomes a step. Or the server accepts
the question only in another form: :class:`Unsupported`. ``answers.py`` and ``refusals.py`` make these from
servers' replies; no other module looks at a reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

Ended = Literal["whole", "cut_off", "refused", "tool_call", "prompt_too_long"]
"""How an answer ended.

``whole``: the model stopped by itself. ``cut_off``: it reached the longest response. ``refused``: the
model, or a filter around it, declined. ``tool_call``: it called a tool and said nothing.
``prompt_too_long``: the server does not ask its model, since the prompt does not fit. """
_HALF_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class TokenUsage:
    """Token counts reported by the server; None if it reported none."""

    prompt_tokens: int | None = None
    response_tokens: int | None = None


@dataclass(frozen=True)
class ModelAnswer:
    """A model's answer."""

    text: str
    """The answer without its thought; empty if the model said nothing."""
    thought: str = ""
    """Separate reasoning; for a refusal its text."""
    ended: Ended = "whole"
    usage: TokenUsage = TokenUsage()
    calls: Any = None
    """The tool calls as the server sent them: ``tool_calls``, or the older ``function_call``; None for an
    answer without calls."""


@dataclass(frozen=True)
class Failed:
    """A question that the server did not answer."""

    reason: str
    """What happened, in words that can follow a colon."""
    again: bool = True
    """Whether the same request may succeed later."""
    pause: float | None = None
    """Seconds that the server asks to wait before the next attempt; None if it names no pause."""
    everyone: bool = False
    """Whether the pause applies to all requests to this server."""
    denied: bool = False
    """Whether the failure concerns the user: the key, the account or its permissions."""
    conversation: bool = False
    """Whether the server refuses the messages themselves, not one of our parameters."""
    foreign: bool = False
    """Whether the reply does not belong to this protocol: a web page, or other JSON."""


@dataclass(frozen=True)
class Unsupported:
    """The server refuses one parameter of the request."""

    parameter: str
    reason: str


Outcome = ModelAnswer | Failed | Unsupported


def readable(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which UTF-8 cannot encode."""
    return _HALF_SURROGATE.sub("\ufffd", text)


def in_one_line(text: str) -> str:
    """The text in a form that any terminal can show: without line breaks and control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in readable(text)).split())
