"""Text as words, for compact renderings and the vocabularies of policies made from scratch.

Lower case, punctuation on its own: ``You are in a Kitchen.`` is ``you are in a kitchen .``. Hyphens
and apostrophes inside a word stay (``barn-door``, ``isn't``). Both engines read commands in lower
case, so an action survives the way to words and back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

STOP_WORD = "."
"""Closes an action of several words in a compact response (``ScratchVocabulary.end``)."""
_WORD = re.compile(r"[a-z0-9]+(?:[-'][a-z0-9]+)*|[^\sa-z0-9]")
_NO_SPACE_BEFORE = re.compile(r" ([.,;:!?)\]])")
_NO_SPACE_AFTER = re.compile(r"([(\[]) ")


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of a text, in order."""
    return _WORD.findall(text.lower())


def join_words(words: Iterable[str]) -> str:
    """The words as a text to read: spaces between them, punctuation where it belongs.

    What :func:`split_words` makes of the result is the words again.
    """
    return _NO_SPACE_AFTER.sub(r"\1", _NO_SPACE_BEFORE.sub(r"\1", " ".join(words)))
