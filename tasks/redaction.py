"""Passwords and keys, taken out of whatever is shown or recorded.

Messages of libraries repeat what they were given: a database's address with its password, a header with a
key. What leaves the program for a terminal, a log or a record goes through :func:`without_secrets`.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 6
"""Characters of a value that is looked for by itself; shorter ones are words of other sentences."""
_NAMES = re.compile(r"(PASSWORD|PASSWD|SECRET|TOKEN|KEY|AUTH_STRING)$")
"""Names of environment variables that hold a secret and nothing else."""
_USER = re.compile(r"([a-z][a-z0-9+.-]*:/*[^\s/:@'\"<>]*):(?!\d+/)([^\s'\"<>]*)@", re.IGNORECASE)
"""``scheme://user:password@``; an unescaped password may have / and @ in it. ``host:port/`` is none."""
_TOKEN = re.compile(r"([a-z][a-z0-9+.-]*://)([^\s/:@'\"<>]+)@", re.IGNORECASE)
"""``scheme://token@``."""
_NAMED = re.compile(
    r"((?:password|passwd|pwd|secret|token|api_?key|access_?key|auth_string)['\"]?\s*[=:]\s*['\"]?)([^\s&'\",;)}\]]+)",
    re.IGNORECASE,
)
"""``password=...`` of an address's options, ``"api_key": "..."``."""
_HEADER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}")


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The text with *** for every password, key and token that can be told to be one.

    Args:
        environment: whose secrets are taken out wherever they are.
    """
    for secret in sorted(_known(environment), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _USER.sub(rf"\1:{HIDDEN}@", text)
    text = _TOKEN.sub(rf"\1{HIDDEN}@", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    return _HEADER.sub(rf"\1 {HIDDEN}", text)


def _known(environment: Mapping[str, str]) -> Iterator[str]:
    """The environment's secrets: values of variables that are named so, and passwords of addresses."""
    for name, value in environment.items():
        found = [value] if _NAMES.search(name) else [match[1] for match in _USER.findall(value)]
        for secret in found:
            yield from (each for each in (secret, unquote(secret)) if len(each) >= SHORTEST)


def hide_secrets_of_tracebacks() -> None:
    """From now on an error that ends this process is shown without secrets."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        said = "".join(traceback.format_exception(kind, error, trace))
        print(without_secrets(said), end="", file=sys.stderr, flush=True)

    sys.excepthook = show
