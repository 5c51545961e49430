"""The n-grams of a corpus: a number for each, and where it occurs.

Only phrases that occur in the corpus can shorten it, so a search knows its candidates beforehand. The pair
(number of its first l - 1 skills, last skill) names a gram of length l, and a hash table turns this pair into
the next free number. This works for any alphabet and length and keeps the numbers small, so that arrays can
hold all data about a phrase. The inverted index lists the places where a gram starts, in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from skillpress.skills.compiled import compiled
from skillpress.skills.corpus import END, Corpus, Ints, Longs, Phrase

LONGEST = 16
"""The largest L allowed. The phrases that start at a place are the bits of one 16-bit number."""


HASH = 0x9E3779B97F4A7C1
"""An odd number near 2^60 / golden ratio: multiplying by it spreads keys over a table."""


class Grams(NamedTuple):
    """G grams of 1 to L skills; numbers below K are the single skills themselves."""

    numbers: Ints
    """(places, L) number of the gram of length l + 1 that starts at each place; -1 past the end."""
    lengths: Ints
    """(G,) number of skills in each gram."""
    examples: Longs
    """(G,) one place where each gram starts; -1 for a single skill."""
    rank: Longs
    """(G,) position among all grams in lexicographic order; 0 for single skills."""
    occurrences: Ints
    """Places where grams start; places in one sequence follow each other, in order. Gram g owns the entries
    from occurrence_starts[g] to occurrence_starts[g + 1]. Single skills have no entries."""
    occurrence_starts: Longs
    """(G + 1,) each gram's first entry of ``occurrences``."""
    repeats: Longs
    """(G,) the gram's first entry in a sequence that holds it several times; later entries are alike."""
    uses: Longs
    """(G,) upper bound on the uses of a gram: weighted occurrences that do not overlap."""
    row: Ints
    """(places,) the sequence that each place belongs to."""
    starts: Longs
    weights: Longs
    """(D,) how often each sequence occurs in the corpus."""
    ranking: Longs
    """(D,) weight of each sequence when pairs are ranked by frequency."""
    alphabet_size: int
    """K."""
    longest: int
    """L."""
    sequences: int
    """|𝓑⁺|, repeats included."""


def number_grams(corpus: Corpus, longest: int) -> Grams:
    """Number all grams of 1 to ``longest`` skills of a corpus.

    Raises:
        ValueError: ``longest`` is above 16.
    """
    if longest > LONGEST:
        raise ValueError(f"max_phrase_length is {longest}; searches allow at most {LONGEST}")
    with np.errstate(over="ignore"):  # hashes wrap around; without numba NumPy would warn
        numbers, lengths, examples = _number(corpus.skills, corpus.alphabet_size, longest)
    row = np.repeat(np.arange(len(corpus.weights), dtype=np.int32), np.diff(corpus.starts))
    in_order, occurrence_starts = _invert(numbers, len(lengths))
    occurrences, repeats = _put_repeats_last(in_order, occurrence_starts, row)
    uses = _most_uses(occurrences, occurrence_starts, lengths, row, corpus.weights)
    rank = _lexicographic_rank(corpus, lengths, examples, longest)
    return Grams(
        numbers=numbers,
        lengths=lengths,
        examples=examples,
        rank=rank,
        occurrences=occurrences,
        occurrence_starts=occurrence_starts,
        repeats=repeats,
        uses=uses,
        row=row,
        starts=corpus.starts,
        weights=corpus.weights,
        ranking=corpus.weights if corpus.ranking is None else corpus.ranking,
        alphabet_size=corpus.alphabet_size,
        longest=longest,
        sequences=corpus.sequences,
    )


def phrases_of(corpus: Corpus, grams: Grams, chosen: Iterable[int]) -> list[Phrase]:
    """The skills of each of these grams."""
    return [_phrase_of(corpus, grams, int(gram)) for gram in chosen]


def _phrase_of(corpus: Corpus, grams: Grams, gram: int) -> Phrase:
    if gram < corpus.alphabet_size:
        return (gram,)
    place = int(grams.examples[gram])
    return tuple(corpus.skills[place : place + int(grams.lengths[gram])].tolist())


@compiled
def _number(skills: Ints, alphabet_size: int, longest: int) -> tuple[Ints, Ints, Longs]:
    places = len(skills)
    numbers = np.full((places, longest), -1, np.int32)
    numbers[:, 0] = skills
    lengths = np.empty(alphabet_size + places * (longest - 1), np.int32)
    examples = np.empty(len(lengths), np.int64)
    lengths[:alphabet_size], examples[:alphabet_size] = 1, -1
    known, shortest_known = alphabet_size, 0
    for length in range(2, longest + 1):
        most = min((known - shortest_known) * alphabet_size, places)
        shortest_known = known
        slots = 2
        while slots < 2 * most:
            slots *= 2
        keys = np.full(slots, -1, np.int64)
        values = np.empty(slots, np.int32)
        for place in range(places - length + 1):
            shorter, last = numbers[place, length - 2], skills[place + length - 1]
            if shorter < 0 or last == END:
                continue
            key = np.int64(shorter) * alphabet_size + last
            slot = (key * HASH >> 20) & (slots - 1)
            while keys[slot] >= 0 and keys[slot] != key:
                slot = (slot + 1) & (slots - 1)
            if keys[slot] < 0:
                keys[slot], values[slot] = key, known
                lengths[known], examples[known] = length, place
                known += 1
            numbers[place, length - 1] = values[slot]
    return numbers, lengths[:known].copy(), examples[:known].copy()


@compiled
def _invert(numbers: Ints, grams: int) -> tuple[Ints, Longs]:
    places, longest = numbers.shape
    starts = np.zeros(grams + 1, np.int64)
    for place in range(places):
        for length in range(1, longest):
            gram = numbers[place, length]
            if gram < 0:
                break
            starts[gram + 1] += 1
    for gram in range(grams):
        starts[gram + 1] += starts[gram]
    occurrences = np.empty(starts[grams], np.int32)
    free = starts[:-1].copy()
    for place in range(places):
        for length in range(1, longest):
            gram = numbers[place, length]
            if gram < 0:
                break
            occurrences[free[gram]] = place
            free[gram] += 1
    return occurrences, starts


@compiled
def _put_repeats_last(in_order: Ints, occurrence_starts: Longs, row: Ints) -> tuple[Ints, Longs]:
    """Sort entries that are alone in their sequence first; their saving is known without a search."""
    occurrences = np.empty_like(in_order)
    repeats = occurrence_starts[:-1].copy()
    for gram in range(len(repeats)):
        first, stop = occurrence_starts[gram], occurrence_starts[gram + 1]
        last = stop
        for entry in range(stop - 1, first - 1, -1):
            here = row[in_order[entry]]
            if (entry > first and row[in_order[entry - 1]] == here) or (
                entry + 1 < stop and row[in_order[entry + 1]] == here
            ):
                last -= 1
                occurrences[last] = in_order[entry]
        repeats[gram] = last
        alone = first
        for entry in range(first, stop):
            here = row[in_order[entry]]
            if (entry == first or row[in_order[entry - 1]] != here) and (
                entry + 1 == stop or row[in_order[entry + 1]] != here
            ):
                occurrences[alone] = in_order[entry]
                alone += 1
    return occurrences, repeats


@compiled
def _most_uses(
    occurrences: Ints, occurrence_starts: Longs, lengths: Ints, row: Ints, weights: Longs
) -> Longs:
    uses = np.zeros(len(lengths), np.int64)
    for gram in range(len(lengths)):
        last = -1
        for entry in range(occurrence_starts[gram], occurrence_starts[gram + 1]):
            place = occurrences[entry]
            if last < 0 or row[place] != row[last] or place >= last + lengths[gram]:
                uses[gram] += weights[row[place]]
                last = place
    return uses


def _lexicographic_rank(corpus: Corpus, lengths: Ints, examples: Longs, longest: int) -> Longs:
    size = corpus.alphabet_size
    places = np.minimum(examples[size:, None] + np.arange(longest), len(corpus.skills) - 1)
    inside = np.arange(longest) < lengths[size:, None]
    padded = np.where(inside, corpus.skills[places], END)
    order = np.lexsort(padded.T[::-1])
    rank = np.zeros(len(lengths), np.int64)
    rank[size:][order] = np.arange(len(order))
    return rank
