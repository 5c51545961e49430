"""A control: as many phrases of each length as greedy finds, drawn at random from the corpus.

The dictionary costs exactly as many bits as the greedy one. A difference between the two shows what choosing
the phrases by description length gains.
"""

from __future__ import annotations

import numpy as np

from skillpress.core.seeds import generator
from skillpress.skills.corpus import Corpus, FoundPhrases
from skillpress.skills.grams import number_grams, phrases_of
from skillpress.skills.search.greedy import merge_pairs


def search_randomly(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """Draw as many phrases of each length as greedy finds, from the corpus's n-grams of that length."""
    grams = number_grams(corpus, max_phrase_length)
    lengths = grams.lengths[merge_pairs(grams, True, -1)]
    drawn: list[int] = []
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        pool = np.flatnonzero(grams.lengths == length)
        pool = pool[np.argsort(grams.rank[pool])]
        drawn.extend(generator(seed, "random dictionary", int(length)).choice(pool, count, replace=False))
    return FoundPhrases(phrases_of(corpus, grams, drawn))
