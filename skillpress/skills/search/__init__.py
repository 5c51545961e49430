"""Searches for a dictionary's learned phrases, one file each.

A search is a function from a corpus of numbers to phrases. Checking, counting and naming are done
once, in ``skills/fit.py``; a new search needs a file here and one line in ``core/registry.py``.
"""

from __future__ import annotations

from typing import Protocol

from skillpress.skills.corpus import Corpus, Found


class Search(Protocol):
    """Finds a dictionary's learned phrases."""

    def __call__(self, corpus: Corpus, max_phrase_length: int, seed: int, /) -> Found:
        """The result may depend on which sequences the corpus holds, but not on their order."""
        ...
