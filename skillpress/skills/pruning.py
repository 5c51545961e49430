"""A dictionary by elimination: begin with every gram that could pay, then drop the least used.

This is the opposite of merging, and works as unigram tokenizers do: each round segments the corpus with all
remaining grams and drops the sixth of them that saves the fewest skills. The best dictionary on the way is
usually near another local optimum than the greedy one, which makes it a good second start.
"""

from __future__ import annotations

from math import log2

import numpy as np

from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import Flags, Ints, Longs
from skillpress.skills.cover import bits_per_sequence
from skillpress.skills.grams import Grams


@compiled
def prune_everything(grams: Grams) -> Longs:
    """The learned grams of the best dictionary found, in lexicographic order."""
    spared_bits = grams.uses * (grams.lengths - 1) * log2(grams.alphabet_size + 1)
    price = grams.lengths * log2(grams.alphabet_size) + log2(grams.longest)
    member = (spared_bits > price) | (grams.lengths == 1)
    backward = np.empty(len(grams.row), np.int32)
    best = member & (grams.lengths > 1)
    fewest_bits = np.inf
    while True:
        times = _count_uses(grams, member, backward)
        size, skills, segments = np.sum(member), np.sum(grams.lengths[member]), np.sum(times)
        bits = bits_per_sequence(grams, int(size), int(skills), int(segments))
        if bits < fewest_bits:
            fewest_bits, best = bits, member & (grams.lengths > 1)
        learned = np.flatnonzero(member & (grams.lengths > 1))
        if len(learned) == 0:
            break
        spared = times[learned] * (grams.lengths[learned] - 1)
        # Ranks are below the number of grams, so all keys differ and any sorting gives one order.
        worst_first = np.argsort(spared * len(grams.lengths) + grams.rank[learned])
        member[learned[worst_first[: len(learned) // 6 + 1]]] = False
    found = np.flatnonzero(best)
    return found[np.argsort(grams.rank[found])]


@compiled
def _count_uses(grams: Grams, member: Flags, backward: Ints) -> Longs:
    """(G,) how often each gram occurs in a minimal segmentation, longest phrases first."""
    times = np.zeros(len(member), np.int64)
    for row in range(len(grams.weights)):
        start, end = grams.starts[row], grams.starts[row + 1] - 1
        backward[end] = 0
        for place in range(end - 1, start - 1, -1):
            fewest = backward[place + 1]
            for length in range(2, min(grams.longest, end - place) + 1):
                if member[grams.numbers[place, length - 1]]:
                    fewest = min(fewest, backward[place + length])
            backward[place] = fewest + 1
        place = start
        while place < end:
            length = min(grams.longest, end - place)
            while (
                backward[place + length] != backward[place] - 1
                or not (member[grams.numbers[place, length - 1]])
            ):
                length -= 1
            times[grams.numbers[place, length - 1]] += grams.weights[row]
            place += length
    return times
