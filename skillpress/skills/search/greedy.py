"""The greedy search of ``benchmarks/greedy_reference.py``, bit for bit, made fast.

- Token lists are one array: the length of the token that starts at each place, 0 inside a token. A pair of
  neighbouring tokens is then a gram and the length of its left part. A merge updates the pair counts only at
  the places it touches, which the inverted index lists.
- The change of 𝓛_BDL is computed by the reference's formula from the same whole numbers (see
  ``description_length.py``); ``cover.py`` counts the saved segments.
- A candidate is skipped if it could not be accepted even at best. Both parts of a pair are phrases. Replacing
  the merge by its two parts turns any cut with the merge into one without it, at one more segment per use. So
  a merge saves at most as many segments as it has occurrences that do not overlap. (The general bound, for a
  phrase that now costs seg(p) segments, is uses * (seg(p) - 1).)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import Bytes, Corpus, FoundPhrases, Ints, Longs
from skillpress.skills.cover import (
    Cover,
    bits,
    bits_per_sequence,
    cover_with_singletons,
    saving,
    set_member,
)
from skillpress.skills.description_length import MINIMAL_GAIN
from skillpress.skills.grams import Grams, number_grams, phrases_of


class NeighbourPairs(NamedTuple):
    """Neighbouring tokens and how often each pair occurs; rows are never removed."""

    token: Bytes
    """(places,) length of the token that starts here; 0 inside one and at a sequence's end."""
    gram: Ints
    left: Ints
    times: Longs
    """(capacity,) per pair: its merge, the length of its left part, count with overlap, by ``ranking``."""
    first: Ints
    """(G,) a pair that merges to the gram; -1 if there is none."""
    following: Ints
    """(capacity,) another pair with the same merge; -1 after the last."""
    used: Longs
    """(1,) rows in use."""


def search_greedily(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """The phrases of the paper's greedy search, in the order accepted; nothing is random."""
    grams = number_grams(corpus, max_phrase_length)
    return FoundPhrases(phrases_of(corpus, grams, merge_pairs(grams, must_pay=True, limit=-1)))


@compiled
def merge_pairs(grams: Grams, must_pay: bool, limit: int) -> Longs:
    """Merge pairs in the reference's order; returns the accepted grams.

    Args:
        must_pay: accept a merge only if it lowers 𝓛_BDL; otherwise accept the first in the ranking.
        limit: the most merges; -1 for no limit.
    """
    cover = cover_with_singletons(grams)
    pairs = _count_pairs(grams)
    accepted = np.empty(len(grams.lengths), np.int64)
    found = 0
    while found != limit:
        pair = _next_pair(grams, cover, pairs, must_pay)
        if pair < 0:
            break
        accepted[found] = pairs.gram[pair]
        set_member(grams, cover, pairs.gram[pair], True)
        _merge(grams, pairs, pairs.gram[pair], pairs.left[pair])
        found += 1
    return accepted[:found].copy()


@compiled
def _next_pair(grams: Grams, cover: Cover, pairs: NeighbourPairs, must_pay: bool) -> int:
    """The first pair in the ranking that is accepted; -1 if none is."""
    current = bits(grams, cover)
    size, skills, segments = cover.totals
    candidates = np.empty(pairs.used[0], np.int32)
    known = 0
    for pair in range(pairs.used[0]):
        gram = pairs.gram[pair]
        # Rows stay when their count falls to 0. A phrase that two pairs merge to is added once.
        if pairs.times[pair] > 0 and not cover.member[gram]:
            fewest = segments - grams.uses[gram]
            at_best = bits_per_sequence(grams, size + 1, skills + grams.lengths[gram], fewest)
            if not must_pay or at_best - current < -MINIMAL_GAIN:
                candidates[known] = pair
                known += 1
    while known:
        best = 0
        for other in range(1, known):
            if _ranks_before(grams, pairs, candidates[other], candidates[best]):
                best = other
        pair = candidates[best]
        gram = pairs.gram[pair]
        if not must_pay:
            return int(pair)
        left = segments - saving(grams, cover, gram)
        merged = bits_per_sequence(grams, size + 1, skills + grams.lengths[gram], left)
        if merged - current < -MINIMAL_GAIN:
            return int(pair)
        known -= 1
        candidates[best] = candidates[known]
    return -1


@compiled
def _ranks_before(grams: Grams, pairs: NeighbourPairs, one: int, other: int) -> bool:
    if pairs.times[one] != pairs.times[other]:
        return bool(pairs.times[one] > pairs.times[other])
    if pairs.gram[one] != pairs.gram[other]:
        # By the phrases' order, so the order of the corpus has no effect.
        return bool(grams.rank[pairs.gram[one]] < grams.rank[pairs.gram[other]])
    return bool(pairs.left[one] < pairs.left[other])


@compiled
def _count_pairs(grams: Grams) -> NeighbourPairs:
    places, known = len(grams.row), len(grams.lengths)
    capacity = min(known * (grams.longest - 1), known + 2 * places)
    pairs = NeighbourPairs(
        token=np.zeros(places, np.uint8),
        gram=np.empty(capacity, np.int32),
        left=np.empty(capacity, np.int32),
        times=np.zeros(capacity, np.int64),
        first=np.full(known, -1, np.int32),
        following=np.empty(capacity, np.int32),
        used=np.zeros(1, np.int64),
    )
    for place in range(places):
        if grams.numbers[place, 0] >= 0:
            pairs.token[place] = 1
            if grams.longest > 1 and grams.numbers[place, 1] >= 0:
                _count(pairs, grams.numbers[place, 1], 1, grams.ranking[grams.row[place]])
    return pairs


@compiled
def _count(pairs: NeighbourPairs, gram: int, left: int, change: int) -> None:
    pair = pairs.first[gram]
    while pair >= 0 and pairs.left[pair] != left:
        pair = pairs.following[pair]
    if pair < 0:
        pair = pairs.used[0]
        pairs.used[0] += 1
        pairs.gram[pair], pairs.left[pair] = gram, left
        pairs.following[pair] = pairs.first[gram]
        pairs.first[gram] = pair
    pairs.times[pair] += change


@compiled
def _merge(grams: Grams, pairs: NeighbourPairs, gram: int, left: int) -> None:
    """Replace a pair by its merge in all token lists, from left to right, and recount at the borders."""
    length = grams.lengths[gram]
    right = length - left
    token = pairs.token
    for entry in range(grams.occurrence_starts[gram], grams.occurrence_starts[gram + 1]):
        place = grams.occurrences[entry]
        # The skills are here but cut into other tokens, or the merge before overlapped and took one.
        if token[place] != left or token[place + left] != right:
            continue
        weight = grams.ranking[grams.row[place]]
        _count(pairs, gram, left, -weight)
        before = place - 1
        while before >= grams.starts[grams.row[place]] and token[before] == 0:
            before -= 1
        if before >= grams.starts[grams.row[place]]:
            width = int(token[before])
            if width + left <= grams.longest:
                _count(pairs, grams.numbers[before, width + left - 1], width, -weight)
            if width + length <= grams.longest:
                _count(pairs, grams.numbers[before, width + length - 1], width, weight)
        width = int(token[place + length])
        if width > 0:
            if right + width <= grams.longest:
                _count(pairs, grams.numbers[place + left, right + width - 1], right, -weight)
            if length + width <= grams.longest:
                _count(pairs, grams.numbers[place, length + width - 1], length, weight)
        token[place], token[place + left] = length, 0
