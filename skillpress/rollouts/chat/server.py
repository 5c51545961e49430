"""The address of a model's server, and the checks made before anything is sent there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from skillpress.core.errors import UserError
from skillpress.rollouts.chat.form import OMITTABLE, RESERVED

ENDPOINT = "/chat/completions"
"""The endpoint below a server's base. An address that ends with it is shortened to its base."""
CUSTOM_HEADERS = "OPENAI_CUSTOM_HEADERS"
"""Environment variable with additional headers, one ``Name: value`` per line, for gateways that need them."""
NAME = re.compile("[a-z0-9!#$%&'*+.^_`|~-]+")
"""Matches a header's name, in lower case."""
SHORTEST_SECRET = 8
"""Fewest characters of a header value that is hidden; hiding shorter ones would garble messages."""


class ChatError(UserError):
    """A refused or unanswered request; the message names the server and the request."""


class ConversationError(ChatError):
    """A server that has answered other conversations refuses this one."""

    def __init__(self, message: str, reason: str) -> None:
        """``reason`` is what the server says, without the names of server and request."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class ChatServer:
    """One model at one address, and how long to wait for it."""

    url: str
    """Base address of the interface, such as ``http://127.0.0.1:8000/v1``."""
    model: str = ""
    """The server's name for the model."""
    key_variable: str = ""
    """Environment variable that holds the key; if empty, no key is sent."""
    deadline_seconds: float = 600.0
    """Maximum time for one answer, all attempts and pauses together."""
    omit: tuple[str, ...] = ()
    """Sampling parameters that are never sent to this server, out of ``OMITTABLE``."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request, as JSON values, such as ``{"reasoning_effort": "low"}``."""
    stream: bool = False
    """Whether answers are asked for as streams, for servers that give no others."""

    @property
    def base(self) -> str:
        """The address without a slash or the endpoint at its end."""
        return self.url.rstrip("/").removesuffix(ENDPOINT)

    @property
    def asked(self) -> dict[str, Any]:
        """What the user changed about requests, for records: only what differs from the default."""
        changes = {"omit": sorted(set(self.omit)), "body": dict(self.body), "stream": self.stream}
        return {name: value for name, value in changes.items() if value}

    def check(self) -> None:
        """Refuse a server that cannot be used, before anything is asked.

        Raises:
            ChatError: the address is wrong or holds a secret, the key cannot be sent, or a parameter to omit
                does not exist.
        """
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a wrong port or bracket
            known = False
        if not known or not self.url.isprintable() or " " in self.url:
            shown = "what is given, which holds an @," if "@" in self.url else repr(self.url)
            raise ChatError(f"--model: {shown} is not an address; an example is http://127.0.0.1:8000/v1")
        if parts.username or parts.password:
            raise ChatError(
                "--model: the address holds a password; put the key in an environment variable instead"
            )
        if parts.query or parts.fragment:
            raise ChatError(
                "--model: the address has a part after '?' or '#'; name only the base, as in "
                "http://127.0.0.1:8000/v1, and put a key in an environment variable"
            )
        if self.key_variable and not self.key:
            raise ChatError(f"--key-variable: the environment variable {self.key_variable} is not set")
        if not _is_value(self.key):
            raise ChatError(
                f"--key-variable: {self.key_variable} holds characters that no HTTP header can carry"
            )
        wrong = [
            name for name, value in self.headers.items() if not (NAME.fullmatch(name) and _is_value(value))
        ]
        if wrong:
            raise ChatError(f"{CUSTOM_HEADERS}: {wrong[0]!r} is a header that HTTP cannot carry")
        if unknown := [name for name in self.omit if name not in OMITTABLE]:
            raise ChatError(
                f"--omit: {', '.join(unknown)} is not a parameter that is sent; --omit accepts "
                f"{', '.join(OMITTABLE)}"
            )
        if taken := sorted(RESERVED.intersection(self.body)):
            raise ChatError(
                f"--body: {', '.join(taken)} is written by skillpress itself; for sampling parameters use "
                f"their own options and keys (--temperature, --omit, --stream, sampling.max_new_tokens)"
            )

    @property
    def key(self) -> str:
        """The key from the environment; empty if none is to be sent."""
        return os.environ.get(self.key_variable, "").strip() if self.key_variable else ""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of every request. The key takes precedence over a custom header of the same name."""
        lines = (line.partition(":") for line in os.environ.get(CUSTOM_HEADERS, "").splitlines())
        custom = {name.strip().lower(): value.strip() for name, colon, value in lines if colon}
        return {**custom, "authorization": f"Bearer {self.key or 'none'}"}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key and the values of custom headers, which no message may show."""
        others = (value for value in self.headers.values() if len(value) >= SHORTEST_SECRET)
        return tuple(filter(None, (self.key, *others)))

    @contextmanager
    def withheld(self) -> Iterator[None]:
        """Take the variables with the key and the headers out of this process's environment, so that the
        processes that it starts in the meantime do not inherit them."""
        names = [name for name in (self.key_variable, CUSTOM_HEADERS) if name in os.environ]
        taken = {name: os.environ.pop(name) for name in names}
        try:
            yield
        finally:
            os.environ.update(taken)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret replaced."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _is_value(text: str) -> bool:
    return text.isascii() and text.isprintable()
