"""Searches for a dictionary's learned phrases, one file each.

A search is a function from a corpus of numbers to phrases. ``skills/fit.py`` does the checking, counting and
naming once; a new search needs a file here and one line in ``core/registry.py``.
"""

from __future__ import annotations

from typing import Protocol

from skillpress.skills.corpus import Corpus, FoundPhrases


class Search(Protocol):
    """Finds a dictionary's learned phrases."""

    def __call__(self, corpus: Corpus, max_phrase_length: int, seed: int, /) -> FoundPhrases:
        """The result may depend on the sequences in the corpus, but not on their order."""
