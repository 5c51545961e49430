"""Untrusted text for a page or a terminal: characters that hide, turn or move letters become visible.

Jinja escapes markup; this module handles the rest. Control characters, terminal escapes, marks that reverse
the direction of writing, letters without width and halves of surrogate pairs are written as their code
(``\\u202e``), and a long text is cut.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
                     "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]")  # fmt: skip
MOST_MARKS = 4
"""The most combining marks on one letter; more would cover the lines above."""


def with_codes(text: str) -> str:
    """The whole text, with the codes of hidden characters; line breaks and tabs stay."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@contextmanager
def visible_output() -> Iterator[None]:
    """Python's output to the terminal has codes in place of hidden characters within the block."""
    printed, progress = _Shown(sys.stdout), _Shown(sys.stderr, kept="\r")
    with redirect_stdout(cast(TextIO, printed)), redirect_stderr(cast(TextIO, progress)):
        yield


class _Shown:
    """A text stream that writes codes, and otherwise behaves like the stream that it wraps."""

    def __init__(self, stream: TextIO, kept: str = "\n") -> None:
        """``kept`` is a character that gets no code: a progress bar returns to the beginning of its line."""
        self._stream, self._kept = stream, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text; returns its number of characters."""
        self._stream.write(self._kept.join(map(with_codes, text.split(self._kept))))
        return len(text)


def visible(text: str, most: int) -> str:
    """A text of at most ``most`` characters (plus a few for the codes), cut at its end."""
    shown = with_codes(text[:most])
    if not shown.isascii():
        shown = _without_piles(shown)
    return shown + (f" … ({len(text):,} characters)" if len(text) > most else "")


def line(text: str, most: int) -> str:
    """The text on one line; a cut is marked without the number of characters."""
    shown = visible(text[:most].replace("\r\n", "\n"), most).replace("\n", "⏎").replace("\t", " ")
    return shown + "…" * (len(text) > most)


def _without_piles(text: str) -> str:
    kept, pile = [], 0
    for letter in text:
        pile = pile + 1 if unicodedata.combining(letter) else 0
        if pile <= MOST_MARKS:
            kept.append(letter)
    return "".join(kept)
