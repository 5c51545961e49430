"""Text of a log for a page: characters that hide, turn or move letters become visible.

Jinja escapes markup; this module handles the rest. Control characters, terminal escapes, marks that reverse
the direction of writing, letters without width and halves of surrogate pairs are written as their code
(``\\u202e``), and a long text is cut.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
                     "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]")  # fmt: skip
MOST_MARKS = 4
"""The most combining marks on one letter; more would cover the lines above."""


def visible(text: str, most: int) -> str:
    """A text of at most ``most`` characters (plus a few for the codes), cut at its end."""
    shown = text[:most]
    shown = _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
    if not shown.isascii():
        shown = _without_piles(shown)
    return shown + (f" … ({len(text):,} characters)" if len(text) > most else "")


def line(text: str, most: int) -> str:
    """The text on one line, without the number of its characters."""
    shown = visible(text[:most].replace("\r\n", "\n"), most).replace("\n", "⏎").replace("\t", " ")
    return shown + "…" * (len(text) > most)


def _without_piles(text: str) -> str:
    kept, pile = [], 0
    for letter in text:
        pile = pile + 1 if unicodedata.combining(letter) else 0
        if pile <= MOST_MARKS:
            kept.append(letter)
    return "".join(kept)
