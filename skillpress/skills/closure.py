"""Closing a dictionary, so that a longer sequence cannot cost less.

seg is not monotone: with ABC a phrase and AB none, the two skills AB cost 2 segments and the three
skills ABC cost 1. A policy may then earn reward by an action that serves nothing else.

- ``prefixes``: every prefix of a phrase is a phrase. Going on *at the end* then never costs less.
  Inserting in the middle still may: AC costs 2, ABC costs 1.
- ``deletions``: what is left of a phrase after leaving out any of its skills is a phrase. Then no
  insertion anywhere lowers the cost: leave the inserted skill out of the phrase that holds it.

Phrases are added after the search, so 𝓛_BDL rises: they cost bits, also where they are never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from skillpress.skills.corpus import Phrase

Closure = Callable[[Phrase], Iterable[Phrase]]
"""From a phrase to the phrases that it brings with it, itself among them."""


def nothing_more(phrase: Phrase) -> Iterable[Phrase]:
    """The phrase itself."""
    return (phrase,)


def prefixes(phrase: Phrase) -> Iterable[Phrase]:
    """The prefixes of 2 skills and more, the phrase itself last."""
    return (phrase[:end] for end in range(2, len(phrase) + 1))


def deletions(phrase: Phrase) -> Iterable[Phrase]:
    """All subsequences of 2 skills and more, the phrase itself last."""
    return (part for size in range(2, len(phrase) + 1) for part in combinations(phrase, size))


def close(learned: Sequence[Phrase], bring: Closure) -> list[Phrase]:
    """The learned phrases, each after the phrases it brings with it."""
    return list(dict.fromkeys(part for phrase in learned for part in bring(phrase)))
