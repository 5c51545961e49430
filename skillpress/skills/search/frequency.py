"""A control: as many phrases as greedy finds, chosen by frequency alone.

If shaping with this dictionary works as well, phrases alone are enough and choosing them by MDL adds nothing.
"""

from __future__ import annotations

from skillpress.skills.corpus import Corpus, FoundPhrases
from skillpress.skills.grams import number_grams, phrases_of
from skillpress.skills.search.greedy import merge_pairs


def search_by_frequency(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """Plain byte-pair encoding: the most frequent pair is merged, whether or not that saves bits.

    Ranking and limits are the greedy search's. The result has fewer phrases if no pair is left.
    """
    grams = number_grams(corpus, max_phrase_length)
    size = len(merge_pairs(grams, True, -1))
    return FoundPhrases(phrases_of(corpus, grams, merge_pairs(grams, False, size)))
