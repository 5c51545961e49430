"""No learned phrases: with the dictionary of singletons, segmentation cost is length (Proposition 1)."""

from __future__ import annotations

from skillpress.skills.corpus import Corpus, FoundPhrases


def no_phrases(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """No phrases beyond the alphabet."""
    return FoundPhrases([])
