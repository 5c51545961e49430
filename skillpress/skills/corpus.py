"""A corpus of skill sequences as arrays: each distinct sequence once, with its count.

Searches see numbers, never names. They may read the distinct sequences in any order, but their result must
not depend on that order: they break ties by the phrases themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Shorts = NDArray[np.uint16]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Phrase = tuple[int, ...]
"""Skills as positions in the alphabet."""

END = -1
"""Marks the end of every sequence, so that each sequence has one more place than skills."""


@dataclass(frozen=True)
class Corpus:
    """D distinct sequences with N skills in total, stored in N + D places."""

    skills: Ints
    """(places,) positions in the alphabet; ``END`` after every sequence."""
    starts: Longs
    """(D + 1,) place of each sequence's first skill; the last entry is the number of places."""
    weights: Longs
    """(D,) how often each sequence occurs in the corpus."""
    alphabet_size: int
    """K."""
    ranking: Longs | None = None
    """(D,) weight of each sequence when pairs are ranked by frequency; None means ``weights``."""

    @cached_property
    def sequences(self) -> int:
        """|𝓑⁺|, repeats included."""
        return int(self.weights.sum())

    @cached_property
    def total_skills(self) -> int:
        """Σ |s_i|, repeats included: the segments that the singletons alone need."""
        lengths = np.diff(self.starts) - 1
        return int(lengths @ self.weights)

    def __iter__(self) -> Iterator[tuple[Phrase, int]]:
        """The distinct sequences with their weights."""
        skills, starts = self.skills.tolist(), self.starts.tolist()
        for row, weight in enumerate(self.weights.tolist()):
            yield tuple(skills[starts[row] : starts[row + 1] - 1]), weight


def make_corpus(
    sequences: Iterable[Sequence[str]], alphabet: Sequence[str], ranked_with: Iterable[Sequence[str]] = ()
) -> Corpus:
    """Count equal sequences and replace names with numbers.

    Args:
        ranked_with: more sequences, for the ranking alone; see ``Corpus.ranking``.

    Raises:
        ValueError: the corpus is empty, or a skill is not in the alphabet.
    """
    counts = Counter(map(tuple, sequences))
    if not counts:
        raise ValueError("the corpus is empty: without a success there is no dictionary to fit")
    position = {skill: number for number, skill in enumerate(alphabet)}
    try:
        return _lay_out(
            counts, position.__getitem__, len(alphabet), counts + Counter(map(tuple, ranked_with))
        )
    except KeyError as error:
        allowed = ", ".join(alphabet)
        raise ValueError(f"skill {error.args[0]!r} is not in the alphabet: {allowed}") from None


def count_numbers(
    sequences: Iterable[Phrase], alphabet_size: int, ranked_with: Iterable[Phrase] = ()
) -> Corpus:
    """A corpus of sequences that already consist of numbers."""
    counts = Counter(sequences)
    return _lay_out(counts, int, alphabet_size, counts + Counter(ranked_with))


def _lay_out(
    counts: Mapping[tuple[Any, ...], int],
    number: Callable[[Any], int],
    alphabet_size: int,
    ranking: Mapping[tuple[Any, ...], int],
) -> Corpus:
    """The corpus of these counts; ``ranking`` adds the counts of sequences that only the ranking uses."""
    distinct = len(ranking)
    lengths = np.fromiter(map(len, ranking), np.int64, distinct)
    starts = np.concatenate(([0], np.cumsum(lengths + 1)))
    skills = np.full(starts[-1], END, np.int32)
    inside = np.ones(len(skills), np.bool_)
    inside[starts[1:] - 1] = False
    skills[inside] = np.fromiter(map(number, chain.from_iterable(ranking)), np.int32, int(lengths.sum()))
    weights = np.fromiter((counts.get(sequence, 0) for sequence in ranking), np.int64, distinct)
    ranks = np.fromiter(ranking.values(), np.int64, distinct)
    return Corpus(
        skills=skills,
        starts=starts,
        weights=weights,
        alphabet_size=alphabet_size,
        ranking=None if np.array_equal(ranks, weights) else ranks,
    )


class FoundPhrases(NamedTuple):
    """The result of a search."""

    phrases: list[Phrase]
    """Learned phrases: 2 to L skills, distinct, in the order found."""
    lower_bound: float | None = None
    """A bound in bits per sequence that no dictionary can go below; None if the search proves nothing."""
