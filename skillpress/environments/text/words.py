"""Text as words, for compact renderings and the vocabularies of policies trained from scratch.

Words are in lower case, and punctuation marks are separate: ``You are in a Kitchen.`` becomes ``you are in a
kitchen .``. Hyphens and apostrophes within a word stay (``barn-door``, ``isn't``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillpress.core.interface import ScratchVocabulary

STOP_WORD = "."
"""Closes an action of several words in a compact response (``ScratchVocabulary.end``)."""
END = "<end>"
"""Closes an action of a compact rendering in which :data:`STOP_WORD` may occur."""
UNKNOWN = "?"
"""Replaces a word that a compact rendering does not know."""
_WORD = re.compile(r"[a-z0-9]+(?:[-'][a-z0-9]+)*|[^\sa-z0-9]")


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of a text, in order."""
    return _WORD.findall(text.lower())


def encodable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def ended_vocabulary(words: Sequence[str], longest: int, continuation: int) -> ScratchVocabulary:
    """The vocabulary of a compact rendering whose answers are closed by :data:`END`.

    Args:
        words: all other words; those that are numbers get the features of numbers.
        longest: number of words in the longest prompt.
        continuation: number of words in the longest continuation.
    """
    return ScratchVocabulary(
        words=(*words, END),
        stop_words=(END,),
        numbers={word: int(word) for word in words if word.isdecimal()},
        state_words=longest,
        end=END,
        continuation_words=continuation,
    )


def word_set(*lines: str) -> frozenset[str]:
    """The words of some lines."""
    return frozenset(word for line in lines for word in line.split())
