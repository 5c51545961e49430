"""A question to a server: the messages of one chat completion, with tools and limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MESSAGE_TOKENS = 16
"""Tokens that a chat template may add to each message after the first."""


@dataclass(frozen=True)
class Question:
    """One conversation that the model continues. Sampling parameters are the client's."""

    messages: Sequence[Mapping[str, Any]]
    """Messages in the form of chat completions."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Tools in the same form; empty if the model has none."""
    max_tokens: int | None = None
    """Maximum number of response tokens, if fewer than the client's own limit; None for that one."""
    stop: tuple[str, ...] = ()
    """A response ends before the first of these texts."""

    @classmethod
    def of(cls, prompt: str) -> Question:
        """A conversation with a single user message."""
        return cls([{"role": "user", "content": prompt}])

    @property
    def body(self) -> dict[str, Any]:
        """The request's fields, apart from model and parameters."""
        return {"messages": self.messages} | ({"tools": self.tools} if self.tools else {})

    @cached_property
    def size(self) -> int:
        """An upper bound of the tokens of messages and tools: their bytes, plus the template's tokens between
        messages.
        """
        contents = [str(message.get("content") or "") for message in self.messages]
        others = [
            {name: value for name, value in message.items() if name not in ("role", "content")}
            for message in self.messages
        ]
        around = [found for found in (*others, *self.tools) if found]
        told = sum(len(content.encode()) for content in contents)
        told += sum(len(json.dumps(found)) for found in around)
        return told + MESSAGE_TOKENS * (len(self.messages) - 1)

    @property
    def characters(self) -> int:
        """Number of characters of all contents."""
        return sum(len(str(message.get("content") or "")) for message in self.messages)
