"""What can come of one question to a server.

A reply is one of three things. The model answered, well or badly: an :class:`Answer`, which is a step of an
episode. The server failed: :class:`Failed`, which is never a step. Or the server takes the question only in
another form: :class:`Unsupported`. ``answers.py`` and ``refusals.py`` make these from what servers send; no
other module looks at a reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Ended = Literal["whole", "cut_off", "refused", "tool_call", "prompt_too_long"]
"""How an answer ended.

``whole``: the model stopped by itself. ``cut_off``: it reached the longest response. ``refused``: the
model, or a filter around it, declined. ``tool_call``: it called a tool and said nothing.
``prompt_too_long``: the server does not ask its model, since the prompt does not fit. """
_HALF_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Usage:
    """Tokens as the server counted them; None where it did not say."""

    prompt_tokens: int | None = None
    response_tokens: int | None = None


@dataclass(frozen=True)
class Answer:
    """What a model answered."""

    text: str
    """The answer without its thought; empty where the model said nothing."""
    thought: str = ""
    """What the server sent apart as the model's reasoning. For a refusal, its words; for a tool call without
    reasoning, the call as JSON."""
    ended: Ended = "whole"
    usage: Usage = Usage()


@dataclass(frozen=True)
class Failed:
    """The server did not answer."""

    reason: str
    """What happened, in words that fit behind a colon."""
    again: bool = True
    """Whether the same request may succeed later."""
    pause: float | None = None
    """Seconds to wait before that, as the server asks; None where it does not say."""
    everyone: bool = False
    """Whether the pause is for all requests to this server."""
    denied: bool = False
    """Whether it is about who asks."""
    foreign: bool = False
    """Whether the reply does not belong to this protocol: a web page, or JSON of another kind."""


@dataclass(frozen=True)
class Unsupported:
    """The server refuses one parameter of the request."""

    parameter: str
    reason: str


Outcome = Answer | Failed | Unsupported


def readable(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which UTF-8 cannot encode."""
    return _HALF_SURROGATE.sub("\ufffd", text)


def in_one_line(text: str) -> str:
    """The text as any terminal can show it: without line breaks and control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in readable(text)).split())
