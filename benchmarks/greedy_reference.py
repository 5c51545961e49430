"""The greedy dictionary search of the paper (section 3.7), specified so that it is reproducible.

    𝒞 = all K skills of the alphabet. Every sequence is a list of tokens, at first its skills.
    Repeat until no pair is accepted:
        Count the adjacent token pairs (overlapping: A A A holds the pair A A twice).
        Drop pairs whose merge is longer than L or already in 𝒞.
        Rank them by (most frequent, merged phrase, length of the left part).
        In this order, accept the first that lowers 𝓛_BDL by more than 1e-9 bits per sequence,
            𝓛_BDL being computed with *exact* segmentation, not with the token lists.
        Add its merge to 𝒞 (its parts stay) and replace the pair in the token lists, left to right.

Phrases compare as tuples of the skills' positions in the alphabet, so the result does not depend on the order
of the corpus. The code is deliberately simple: this file defines the right result, and tests compare the
library's fast search (``skillpress/skills/search/greedy.py``) with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from skillpress.skills.corpus import Phrase
from skillpress.skills.description_length import MINIMAL_GAIN, description_length
from skillpress.skills.segmentation import segmentation_cost

Pair = tuple[Phrase, Phrase]


def greedy_reference(
    corpus: Sequence[Phrase],
    alphabet_size: int,
    max_phrase_length: int,
    coded_length: int | None = None,
    ranked_with: Sequence[Phrase] = (),
) -> list[Phrase]:
    """The phrases that the greedy search adds to the singletons, in the order accepted.

    Args:
        corpus: at least one sequence of numbers below ``alphabet_size``.
        alphabet_size: K.
        max_phrase_length: L.
        coded_length: L in the description length alone. 1 stores no lengths; None means L.
        ranked_with: more sequences. Their pairs count in the ranking and nowhere else.
    """
    coded_length = coded_length or max_phrase_length
    phrases: list[Phrase] = [(skill,) for skill in range(alphabet_size)]
    tokens: list[list[Phrase]] = [[(skill,) for skill in s] for s in (*corpus, *ranked_with)]

    def bits(candidates: list[Phrase]) -> float:
        members = frozenset(candidates)
        segments = sum(segmentation_cost(s, members, max_phrase_length) for s in corpus)
        skills = sum(map(len, candidates))
        return description_length(
            skills,
            len(candidates),
            segments=segments,
            sequences=len(corpus),
            alphabet_size=alphabet_size,
            max_phrase_length=coded_length,
        )

    current = bits(phrases)
    while True:
        for left, right in _ranked_pairs(tokens, set(phrases), max_phrase_length):
            merged = bits([*phrases, left + right])
            if merged - current < -MINIMAL_GAIN:
                break
        else:
            return phrases[alphabet_size:]
        phrases.append(left + right)
        tokens = [_replace(sequence, left, right) for sequence in tokens]
        current = merged


def _ranked_pairs(tokens: list[list[Phrase]], known: set[Phrase], max_phrase_length: int) -> list[Pair]:
    counts: Counter[Pair] = Counter()
    for sequence in tokens:
        counts.update(pairwise(sequence))
    pairs = [
        (left, right)
        for left, right in counts
        if len(left) + len(right) <= max_phrase_length and left + right not in known
    ]
    return sorted(pairs, key=lambda pair: (-counts[pair], pair[0] + pair[1], len(pair[0])))


def _replace(sequence: list[Phrase], left: Phrase, right: Phrase) -> list[Phrase]:
    replaced: list[Phrase] = []
    position = 0
    while position < len(sequence):
        if sequence[position : position + 2] == [left, right]:
            replaced.append(left + right)
            position += 2
        else:
            replaced.append(sequence[position])
            position += 1
    return replaced
