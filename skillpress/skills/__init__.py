"""Skill sequences and the dictionary that compresses them: the paper's core.

``fit`` is the E-step: it finds the phrases for which corpus and dictionary together take few bits
(Eq. 4). A search is a function from a corpus of numbers to phrases, so that a new one needs one line
in ``SEARCHES``; checking, counting and naming are done here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from skillpress.skills.buffer import SuccessBuffer
from skillpress.skills.closure import CLOSURES, close
from skillpress.skills.controls import search_by_frequency, search_randomly
from skillpress.skills.corpus import Corpus, Found, make_corpus
from skillpress.skills.dictionary import (
    SkillDictionary,
    check_alphabet,
    load_dictionary,
    save_dictionary,
)
from skillpress.skills.exact import search_exactly
from skillpress.skills.exploitable import exploitable, exploitable_rate
from skillpress.skills.greedy import search_greedily
from skillpress.skills.lookup import make_table, uses
from skillpress.skills.refined import search_refined
from skillpress.skills.shaping import SHAPINGS, Shaping, make_shaping


class Search(Protocol):
    """Finds a dictionary's learned phrases."""

    def __call__(self, corpus: Corpus, max_phrase_length: int, seed: int, /) -> Found:
        """The result may depend on which sequences the corpus holds, but not on their order."""
        ...


def no_phrases(corpus: Corpus, max_phrase_length: int, seed: int) -> Found:
    """The dictionary of singletons: with it, segmentation cost is length (Proposition 1)."""
    return Found([])


SEARCHES: dict[str, Search] = {
    "greedy": search_greedily,
    "refined": search_refined,
    "exact": search_exactly,
    "frequency": search_by_frequency,
    "random": search_randomly,
    "singletons": no_phrases,
}
"""``skills.search`` in params.yaml to the function."""


def fit(
    corpus: Iterable[Sequence[str]],
    alphabet: Sequence[str],
    max_phrase_length: int,
    search: str = "greedy",
    seed: int = 0,
    closure: str = "none",
) -> SkillDictionary:
    """The E-step: a dictionary of low description length for the corpus (Eq. 3-4).

    Args:
        corpus: the skill sequences of successes, in any order; repeats count as often as they
            stand there, and an empty one counts as a sequence that needs no segments.
        alphabet: Σ, in the environment's fixed order.
        max_phrase_length: L, 1 to 16.
        search: an entry of ``SEARCHES``.
        seed: for searches that draw at random.
        closure: an entry of ``CLOSURES``; phrases added to what the search found.

    Raises:
        ValueError: the corpus is empty, a skill is not in the alphabet, or the search or closure is unknown.
    """
    check_alphabet(alphabet, max_phrase_length)
    if search not in SEARCHES:
        raise ValueError(f"search {search!r} is unknown; allowed: {', '.join(SEARCHES)}")
    counted = make_corpus(corpus, alphabet)
    found = SEARCHES[search](counted, max_phrase_length, seed)
    phrases = [*((skill,) for skill in range(len(alphabet))), *close(found.phrases, closure)]
    return SkillDictionary(
        alphabet=tuple(alphabet),
        max_phrase_length=max_phrase_length,
        phrases=tuple(tuple(alphabet[skill] for skill in phrase) for phrase in phrases),
        counts=tuple(uses(counted, make_table(phrases, len(alphabet), max_phrase_length))),
        sequences=counted.sequences,
        search=search,
        seed=seed,
        closure=closure,
        lower_bound=found.lower_bound,
    )


__all__ = [
    "CLOSURES",
    "SEARCHES",
    "SHAPINGS",
    "Search",
    "Shaping",
    "SkillDictionary",
    "SuccessBuffer",
    "exploitable",
    "exploitable_rate",
    "fit",
    "load_dictionary",
    "make_shaping",
    "save_dictionary",
]
