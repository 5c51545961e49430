"""Whether a prompt shows every message of a conversation, and how a conversation can be written otherwise.

Many chat templates show or allow one system message, at the beginning. Some silently drop a later one, so a
model would be trained on prompts that lack its program's instructions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Messages = Sequence[Mapping[str, Any]]


def arrangements(messages: Messages) -> Iterator[Messages]:
    """The conversation as it is; then forms for templates that cannot show its system messages.

    A system message after another message becomes the user's; then consecutive messages of the user are
    joined; last, the first system message becomes the user's as well. All forms but the last begin alike, so
    the prompts of a conversation that grows extend one another.
    """
    yield messages
    if any(message["role"] == "system" for message in messages[1:]):
        told = [*messages[:1], *map(_by_the_user, messages[1:])]
        yield told
        yield list(_joined(told))
    if any(message["role"] == "system" for message in messages):
        yield list(_joined(list(map(_by_the_user, messages))))


def _by_the_user(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**message, "role": "user"} if message["role"] == "system" else message


def _joined(messages: Messages) -> Iterator[Mapping[str, Any]]:
    last: Mapping[str, Any] | None = None
    for message in messages:
        if last is not None and last["role"] == message["role"] == "user":
            last = {**last, "content": f"{last['content']}\n\n{message['content']}"}
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def left_out(messages: Messages, prompt: str) -> str | None:
    """The role of the first message whose text is missing from the prompt, or of a system message that it
    moves; None if it shows all.

    Thoughts and calls of earlier answers do not count: templates leave out thoughts on purpose, and write
    calls in their own form. An answer with a call may lose its text.
    """
    place = 0
    for message in messages:
        if message["role"] == "assistant" and message.get("tool_calls"):
            continue
        forms = _forms(str(message.get("content") or ""))
        found = max(prompt.find(form, place) for form in forms)
        if found >= 0:
            place = found
        # Where a template gathers them at the beginning, prompts would no longer extend one another.
        elif message["role"] == "system" or not any(form in prompt for form in forms):
            return str(message["role"])
    return None


def _forms(text: str) -> tuple[str, ...]:
    """The forms in which templates write a text: without space around it, or inside a JSON text."""
    bare = text.strip()
    return bare, json.dumps(bare, ensure_ascii=False)[1:-1], json.dumps(bare)[1:-1]
