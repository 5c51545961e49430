"""Removes passwords and keys from everything that is shown or recorded.

Messages of libraries repeat their inputs: a database's address with its password, a header with a key. All
text that leaves the program for a terminal, a log or a record passes through :func:`without_secrets`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from urllib.parse import unquote

from skillpress.core.visible import with_codes

HIDDEN = "***"
SHORTEST = 6
"""Fewest characters of a value that is searched for by itself; shorter values are also ordinary words."""
_NAMES = re.compile(r"(PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|TOKEN|KEY|AUTH_STRING)$", re.IGNORECASE)
"""Names of environment variables that hold only a secret."""
_SCHEME = r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:"
"""Matched at the start of a word only: a long word without a colon would be read from each of its letters."""
_USER = re.compile(rf"({_SCHEME}/*[^\s/:@'\"<>]*):(?!\d+/|password@)([^\s'\"<>]*)@", re.IGNORECASE)
"""``scheme://user:password@``; an unescaped password may contain / and @. ``host:port/`` is not a password,
and the word ``password`` is a placeholder in examples of addresses."""
_AT = re.compile(r"(?<![^\s'\"<>])[^\s'\"<>]*@")
"""Text up to an @. ``_USER`` is tried only here, because from every colon it would read to the end."""
_TOKEN = re.compile(rf"({_SCHEME}//)([^\s/:@'\"<>]+)@", re.IGNORECASE)
"""Addresses such as ``scheme://token@``."""
_SECRET = (
    "password|passwd|passphrase|pwd|secret|token|credentials?|auth_string"
    "|(?:api|access|account|private|secret)[_-]?key"
)
_NAMED = re.compile(
    rf"((?:{_SECRET})['\"]?\s*[=:]\s*)(?:(['\"])[^'\"\n]+\2|(['\"]?)[^\s&'\",;)}}\]]+)", re.IGNORECASE
)
"""``password=...`` of an address's options, ``"api_key": "..."``; quoted values may contain spaces."""
_QUERY = re.compile(
    r"([?&](?:[\w.-]*[_-])?(?:key|sig|signature|auth|code|session)=)[^\s&#'\"<>]+", re.IGNORECASE
)
"""``?key=...`` in an address."""
_HEADER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}")
_AUTHORIZATION = re.compile(
    r"(authorization['\"]?\s*[=:]\s*['\"]?(?:[a-z]+\s+)?+)[^\s'\",]{6,}", re.IGNORECASE
)
"""The header of this name, with any scheme."""
_KEY = re.compile(r"\b(sk|hf|ghp|github_pat|glpat)([-_])[A-Za-z0-9_-]{16,}")
"""Keys with a known prefix."""


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The text with *** for every recognised password, key and token, and for secrets of ``environment``."""
    for secret in sorted(_known(environment), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _AT.sub(lambda found: _USER.sub(rf"\1:{HIDDEN}@", found[0]), text)
    text = _TOKEN.sub(rf"\1{HIDDEN}@", text)
    text = _NAMED.sub(lambda found: f"{found[1]}{found[2] or found[3]}{HIDDEN}{found[2] or ''}", text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    text = _HEADER.sub(rf"\1 {HIDDEN}", text)
    return _KEY.sub(rf"\1\2{HIDDEN}", text)


def _known(environment: Mapping[str, str]) -> Iterator[str]:
    """The environment's secrets: values of variables with such a name, and passwords in addresses."""
    for name, value in environment.items():
        found = [value] if _NAMES.search(name) else [match[1] for match in _USER.findall(value)]
        for secret in found:
            yield from (each for each in (secret, unquote(secret)) if len(each) >= SHORTEST)


def hide_secrets_of_tracebacks() -> None:
    """Remove secrets from later errors that end this process or one of its threads; Ctrl-C prints a line."""

    def show(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):  # while modules are imported; later ones are caught
            print("interrupted before anything was started", file=sys.stderr, flush=True)
            return
        said = "".join(traceback.format_exception(kind, error, trace))
        print(with_codes(without_secrets(said)), end="", file=sys.stderr, flush=True)

    def show_of_thread(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_type is not SystemExit:
            show(ended.exc_type, ended.exc_value, ended.exc_traceback)

    sys.excepthook, threading.excepthook = show, show_of_thread
