"""Which phrases a log uses or holds, and what each saves.

A trace *uses* a phrase if the phrase is in its minimal segmentation (longest phrase first), and *holds* it if
the phrase's skills occur in it consecutively. A trace that holds a phrase need not use it: a longer phrase
may cover the same steps. Equal sequences are processed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skillpress.skills.corpus import Phrase, make_corpus
from skillpress.skills.description_length import description_length
from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.lookup import costs, make_table

MOST_TIMES = 65_535


@dataclass(frozen=True)
class Usage:
    """How the traces of a log use (or hold) the learned phrases of a dictionary."""

    phrases: tuple[Skills, ...]
    """The learned phrases, in the dictionary's order."""
    rows: NDArray[np.int64]
    """(traces,) index of each trace's distinct sequence."""
    times: NDArray[np.uint16]
    """(distinct sequences, phrases) how often a sequence uses (or holds) a phrase; at most 65,535."""

    @cached_property
    def traces(self) -> NDArray[np.int64]:
        """(phrases,) number of traces with each phrase."""
        return np.bincount(self.rows, minlength=len(self.times)) @ (self.times > 0)

    @cached_property
    def total(self) -> NDArray[np.int64]:
        """(phrases,) occurrences of each phrase in all traces."""
        return np.bincount(self.rows, minlength=len(self.times)) @ self.times.astype(np.int64)

    def having(self, phrase: int) -> NDArray[np.bool_]:
        """(traces,) whether each trace has the phrase."""
        return np.asarray(self.times[:, phrase] > 0)[self.rows]


def uses(dictionary: SkillDictionary, sequences: Sequence[Skills]) -> Usage:
    """How often each trace's cut uses each learned phrase.

    Raises:
        ValueError: a skill is not in the alphabet.
    """
    return _counted(dictionary, sequences, dictionary.segment)


def holdings(dictionary: SkillDictionary, sequences: Sequence[Skills]) -> Usage:
    """How often each trace holds each learned phrase, overlaps included."""
    longest = dictionary.max_phrase_length

    def stretches(sequence: Skills) -> Iterable[Skills]:
        ends = range(len(sequence) + 1)
        return (sequence[start:end] for end in ends for start in range(max(0, end - longest), end - 1))

    return _counted(dictionary, sequences, stretches)


def _counted(
    dictionary: SkillDictionary,
    sequences: Sequence[Skills],
    phrases_of: Callable[[Skills], Iterable[Skills]],
) -> Usage:
    number: dict[Skills, int] = {}
    rows = np.fromiter((number.setdefault(s, len(number)) for s in sequences), np.int64, len(sequences))
    column = {phrase: place for place, phrase in enumerate(dictionary.learned)}
    times = np.zeros((len(number), len(column)), np.uint16)
    for sequence, row in number.items():
        for phrase in phrases_of(sequence):
            if (place := column.get(phrase)) is not None:
                times[row, place] += times[row, place] < MOST_TIMES
    return Usage(dictionary.learned, rows, times)


def bits_saved(dictionary: SkillDictionary, sequences: Sequence[Skills]) -> list[float]:
    """Bits that all sequences together would need more without each learned phrase, after a new cut.

    A value may be negative.

    Raises:
        ValueError: there is no sequence, or a skill is not in the alphabet.
    """
    corpus = make_corpus(sequences, dictionary.alphabet)
    position = {skill: number for number, skill in enumerate(dictionary.alphabet)}
    singles: list[Phrase] = [(number,) for number in range(len(position))]
    learned: list[Phrase] = [tuple(position[skill] for skill in phrase) for phrase in dictionary.learned]

    def bits(phrases: list[Phrase]) -> float:
        table = make_table([*singles, *phrases], len(singles), dictionary.max_phrase_length)
        segments = int(costs(corpus, table) @ corpus.weights)
        skills, size = len(singles) + sum(map(len, phrases)), len(singles) + len(phrases)
        return description_length(
            skills,
            size,
            segments=segments,
            sequences=1,
            alphabet_size=len(singles),
            max_phrase_length=dictionary.max_phrase_length,
        )

    whole = bits(learned)
    return [bits(learned[:place] + learned[place + 1 :]) - whole for place in range(len(learned))]
