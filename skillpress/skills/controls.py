"""Dictionaries that isolate what the description length contributes: controls, not methods.

Both are as large as the greedy dictionary of the same corpus. If shaping with them works as well, then
not the MDL choice of phrases matters but merely that there are some.
"""

from __future__ import annotations

import numpy as np

from skillpress.seeds import generator
from skillpress.skills.corpus import Corpus, Found
from skillpress.skills.grams import number_grams, phrases_of
from skillpress.skills.greedy import merge_pairs


def search_by_frequency(corpus: Corpus, max_phrase_length: int, seed: int) -> Found:
    """Plain byte-pair encoding: the most frequent pair is merged, whether or not that pays.

    Ranking and limits are the greedy search's; there may be fewer phrases when no pair is left.
    """
    grams = number_grams(corpus, max_phrase_length)
    size = len(merge_pairs(grams, True, -1))
    return Found(phrases_of(corpus, grams, merge_pairs(grams, False, size)))


def search_randomly(corpus: Corpus, max_phrase_length: int, seed: int) -> Found:
    """As many phrases of each length as greedy finds, drawn from the corpus's n-grams of that length.

    The dictionary therefore costs exactly as many bits as the greedy one.
    """
    grams = number_grams(corpus, max_phrase_length)
    lengths = grams.lengths[merge_pairs(grams, True, -1)]
    drawn: list[int] = []
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        pool = np.flatnonzero(grams.lengths == length)
        pool = pool[np.argsort(grams.rank[pool])]
        drawn.extend(generator(seed, "random dictionary", int(length)).choice(pool, count, replace=False))
    return Found(phrases_of(corpus, grams, drawn))
