"""The E-step: find the phrases for which corpus and dictionary together take few bits (Eq. 3-4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skillpress.skills.closure import close
from skillpress.skills.corpus import make_corpus
from skillpress.skills.dictionary import SkillDictionary, check_alphabet
from skillpress.skills.lookup import make_table, uses
from skillpress.skills.parameters import closure_called, search_called

if TYPE_CHECKING:
    from skillpress.skills.parameters import SkillParameters


def fit(
    corpus: Iterable[Sequence[str]],
    alphabet: Sequence[str],
    max_phrase_length: int,
    search: str = "greedy",
    seed: int = 0,
    closure: str = "none",
    ranked_with: Iterable[Sequence[str]] = (),
) -> SkillDictionary:
    """A dictionary of low description length for the corpus.

    Args:
        corpus: the skill sequences of successes, in any order. Repeats count each time, and an empty sequence
            counts as one that needs no segments.
        alphabet: Σ, in the environment's fixed order.
        max_phrase_length: L, 1 to 16.
        search: an entry of ``SEARCHES``.
        seed: for searches that draw at random.
        closure: an entry of ``CLOSURES``: which phrases to add to the search's result.
        ranked_with: more sequences. Their pairs count where a search ranks by frequency, and nowhere else.

    Raises:
        ParamsError: the search or the closure is unknown.
        ValueError: the corpus is empty, or a skill is not in the alphabet.
    """
    check_alphabet(alphabet, max_phrase_length)
    find, bring = search_called(search), closure_called(closure)
    counted = make_corpus(corpus, alphabet, ranked_with)
    found = find(counted, max_phrase_length, seed)
    phrases = [*((skill,) for skill in range(len(alphabet))), *close(found.phrases, bring)]
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


def fit_as(
    section: SkillParameters | SkillDictionary,
    corpus: Iterable[Sequence[str]],
    alphabet: Sequence[str],
    seed: int,
    ranked_with: Iterable[Sequence[str]] = (),
) -> SkillDictionary:
    """:func:`fit` with the length, search and closure of a section, or of another dictionary."""
    return fit(
        corpus,
        alphabet,
        section.max_phrase_length,
        search=section.search,
        seed=seed,
        closure=section.closure,
        ranked_with=ranked_with,
    )
