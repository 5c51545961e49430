"""The request forms that clients use: chat completions, responses, messages, and Google's. Each has its own
file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError, Reply


@dataclass(frozen=True)
class Form:
    """One vendor's form of requests and answers."""

    path: str
    """The path after the base URL."""
    read: Callable[[Mapping[str, Any]], ModelRequest]
    """Parses a body as a request; raises RefusedRequestError."""
    write: Callable[[str, str, ModelRequest, Sequence[Reply]], dict[str, Any]]
    """Maps (id, model, request, replies) to the body of an answer."""
    stream: Callable[[str, str, ModelRequest, Sequence[Reply]], Iterator[str]]
    """Same as ``write``, as server-sent events."""
    error: Callable[[RefusedRequestError], dict[str, Any]]
    """Makes the body of a refusal."""
    version: str = "/v1"
    """The beginning of every path, after an episode's address."""
    stream_path: str = ""
    """The path for streams; empty if the body says whether a stream is wanted."""
    count_path: str = ""
    """The path that counts a request's tokens; empty for none."""
    count: Callable[[int], dict[str, Any]] = lambda tokens: {"input_tokens": tokens}
    """Maps a number of tokens to the body of the answer."""


def forms() -> tuple[Form, ...]:
    """All forms."""
    from skillpress.rollouts.programs.forms import chat, google, messages, responses

    return chat.FORM, responses.FORM, messages.FORM, google.FORM
