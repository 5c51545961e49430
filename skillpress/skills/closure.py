"""Close a dictionary, so that a longer sequence cannot cost less.

seg is not monotone. If ABC is a phrase and AB is not, the two skills AB cost 2 segments and the three skills
ABC cost 1. A policy may then earn reward with an action that has no other use.

- ``prefixes``: every prefix of a phrase is a phrase. Then adding skills *at the end* never lowers the cost.
  Inserting one in the middle still may: AC costs 2, ABC costs 1.
- ``deletions``: a phrase stays a phrase when any of its skills are left out. Then no insertion anywhere
  lowers the cost: leave the inserted skill out of the phrase that holds it.

Phrases are added after the search, so 𝓛_BDL rises: each costs bits, even if it is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from skillpress.skills.corpus import Phrase

Closure = Callable[[Phrase], Iterable[Phrase]]
"""A phrase to the phrases that its closure adds, including itself."""


def nothing_more(phrase: Phrase) -> Iterable[Phrase]:
    """The phrase itself."""
    return (phrase,)


def prefixes(phrase: Phrase) -> Iterable[Phrase]:
    """The prefixes of two or more skills, the phrase itself last."""
    return (phrase[:end] for end in range(2, len(phrase) + 1))


def deletions(phrase: Phrase) -> Iterable[Phrase]:
    """All subsequences of two or more skills, the phrase itself last."""
    return (part for size in range(2, len(phrase) + 1) for part in combinations(phrase, size))


def close(learned: Sequence[Phrase], bring: Closure) -> list[Phrase]:
    """The learned phrases, each after the phrases that the closure adds for it."""
    return list(dict.fromkeys(part for phrase in learned for part in bring(phrase)))
