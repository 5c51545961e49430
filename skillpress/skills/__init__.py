"""Skill sequences and the dictionary that compresses them: the paper's core.

``fit`` is the E-step: it finds the phrases for which corpus and dictionary together take few bits
(Eq. 4). A search is a function from a corpus of numbers to phrases, so that a new one needs one line
in ``SEARCHES``; checking, counting and naming are done here, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from skillpress.skills.buffer import SuccessBuffer
from skillpress.skills.dictionary import (
    SkillDictionary,
    check_alphabet,
    load_dictionary,
    save_dictionary,
)
from skillpress.skills.reference import Phrase, greedy_reference
from skillpress.skills.segmentation import segment
from skillpress.skills.shaping import SHAPINGS, Shaping, make_shaping


class Search(Protocol):
    """Finds a dictionary's learned phrases."""

    def __call__(
        self, corpus: Sequence[Phrase], alphabet_size: int, max_phrase_length: int, seed: int
    ) -> list[Phrase]:
        """Phrases of 2 to L skills, distinct, in the order found; skills are numbers below K."""
        ...


def greedy(corpus: Sequence[Phrase], alphabet_size: int, max_phrase_length: int, seed: int) -> list[Phrase]:
    """The paper's greedy search; nothing in it is random."""
    return greedy_reference(corpus, alphabet_size, max_phrase_length)


SEARCHES: dict[str, Search] = {"greedy": greedy}
"""``skills.search`` in params.yaml to the function."""


def fit(
    corpus: Sequence[Sequence[str]],
    alphabet: Sequence[str],
    max_phrase_length: int,
    search: str = "greedy",
    seed: int = 0,
) -> SkillDictionary:
    """The E-step: a dictionary of low description length for the corpus (Eq. 3-4).

    Args:
        corpus: the skill sequences of successes, in any order; repeats count as often as they
            stand there, and an empty one counts as a sequence that needs no segments.
        alphabet: Σ, in the environment's fixed order.
        max_phrase_length: L.
        search: an entry of ``SEARCHES``.
        seed: for searches that draw at random.

    Raises:
        ValueError: the corpus is empty, a skill is not in the alphabet, or the search is unknown.
    """
    check_alphabet(alphabet, max_phrase_length)
    if search not in SEARCHES:
        raise ValueError(f"search {search!r} is unknown; allowed: {', '.join(SEARCHES)}")
    numbers = encode(corpus, alphabet)
    singletons = [(skill,) for skill in range(len(alphabet))]
    phrases = singletons + SEARCHES[search](numbers, len(alphabet), max_phrase_length, seed)
    members = frozenset(phrases)
    used = Counter(phrase for s in numbers for phrase in segment(s, members, max_phrase_length))
    return SkillDictionary(
        alphabet=tuple(alphabet),
        max_phrase_length=max_phrase_length,
        phrases=tuple(tuple(alphabet[skill] for skill in phrase) for phrase in phrases),
        counts=tuple(used[phrase] for phrase in phrases),
        sequences=len(numbers),
        search=search,
        seed=seed,
    )


def encode(corpus: Sequence[Sequence[str]], alphabet: Sequence[str]) -> list[Phrase]:
    """Skills as their positions in the alphabet.

    Raises:
        ValueError: the corpus is empty, or a skill is not in the alphabet.
    """
    if not corpus:
        raise ValueError("the corpus is empty: without a success there is no dictionary to fit")
    position = {skill: number for number, skill in enumerate(alphabet)}
    try:
        return [tuple(position[skill] for skill in sequence) for sequence in corpus]
    except KeyError as error:
        allowed = ", ".join(alphabet)
        raise ValueError(f"skill {error.args[0]!r} is not in the alphabet: {allowed}") from None


__all__ = [
    "SEARCHES",
    "SHAPINGS",
    "Search",
    "Shaping",
    "SkillDictionary",
    "SuccessBuffer",
    "encode",
    "fit",
    "load_dictionary",
    "make_shaping",
    "save_dictionary",
]
