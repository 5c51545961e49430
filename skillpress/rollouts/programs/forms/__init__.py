"""The forms in which clients ask a model: chat completions, responses, messages, Google's. One file each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError, Reply


@dataclass(frozen=True)
class Form:
    """One vendor's form of requests and answers."""

    path: str
    """The path behind the base URL."""
    read: Callable[[Mapping[str, Any]], ModelRequest]
    """A request's body as a request; raises RefusedRequestError."""
    write: Callable[[str, str, ModelRequest, Sequence[Reply]], dict[str, Any]]
    """(id, model, request, replies) to the body of an answer."""
    stream: Callable[[str, str, ModelRequest, Sequence[Reply]], Iterator[str]]
    """The same as server-sent events."""
    error: Callable[[RefusedRequestError], dict[str, Any]]
    """The body of a refusal."""
    version: str = "/v1"
    """The beginning of every path, behind an episode's address."""
    stream_path: str = ""
    """The path of streams; empty where the body says whether it wants one."""
    count_path: str = ""
    """The path that counts a request's tokens; empty for none."""
    count: Callable[[int], dict[str, Any]] = lambda tokens: {"input_tokens": tokens}
    """A number of tokens to the body of its answer."""


def forms() -> tuple[Form, ...]:
    """All forms."""
    from skillpress.rollouts.programs.forms import chat, google, messages, responses

    return chat.FORM, responses.FORM, messages.FORM, google.FORM
