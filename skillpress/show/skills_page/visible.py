"""Text of a log as a page may show it: everything that hides, turns or moves letters becomes visible.

Jinja escapes markup; this is about the rest. Control characters, terminal escapes, marks that reverse the
direction of writing and letters without width are written as their code (``\\u202e``), halves of surrogate
pairs as well, and a long text is cut.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
                     "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]")  # fmt: skip
MOST_MARKS = 4
"""Combining marks on one letter; more pile up over the lines above."""


def visible(text: str, most: int) -> str:
    """A text of at most so many characters (and a few for the codes), cut at its end."""
    shown = text[:most]
    shown = _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
    if not shown.isascii():
        shown = _without_piles(shown)
    return shown + (f" … ({len(text):,} characters)" if len(text) > most else "")


def line(text: str, most: int) -> str:
    """The same on one line, and without the number of its characters."""
    shown = visible(text[:most].replace("\r\n", "\n"), most).replace("\n", "⏎").replace("\t", " ")
    return shown + "…" * (len(text) > most)


def _without_piles(text: str) -> str:
    kept, pile = [], 0
    for letter in text:
        pile = pile + 1 if unicodedata.combining(letter) else 0
        if pile <= MOST_MARKS:
            kept.append(letter)
    return "".join(kept)
