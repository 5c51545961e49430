"""The cores of a dictionary: a core is what several phrases share, and it replaces them.

Where a routine is followed by one of a few steps each time, the shortest description may have a phrase for
each follower and none for the routine alone. A reader wants the routine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from skillpress.skills.corpus import make_corpus
from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.lookup import make_table, uses

FEWEST, SHORTEST = 3, 3
"""A core needs at least this many phrases that share it, and this many steps."""


def with_cores(dictionary: SkillDictionary, corpus: Sequence[Skills]) -> SkillDictionary:
    """The dictionary with each core in place of the phrases that are a core and one more step; without
    cores it is the same dictionary."""
    learned = dictionary.learned
    shared = Counter(part for phrase in learned for part in {phrase[1:], phrase[:-1]})
    cores = {
        part
        for part, phrases in shared.items()
        if phrases >= FEWEST and len(part) >= SHORTEST and part not in learned
    }
    if not cores:
        return dictionary
    kept = {phrase for phrase in learned if not any(_holds(phrase, core) for core in cores)}
    return with_phrases(dictionary, kept | cores, corpus)


def with_phrases(
    dictionary: SkillDictionary, learned: Iterable[Skills], corpus: Sequence[Skills]
) -> SkillDictionary:
    """The dictionary with these learned phrases in place of its own."""
    position = {skill: number for number, skill in enumerate(dictionary.alphabet)}
    phrases = [(skill,) for skill in dictionary.alphabet] + sorted(learned)
    numbered = [tuple(position[skill] for skill in phrase) for phrase in phrases]
    table = make_table(numbered, len(position), dictionary.max_phrase_length)
    counts = tuple(uses(make_corpus(corpus, dictionary.alphabet), table))
    return replace(dictionary, phrases=tuple(phrases), counts=counts)


def _holds(phrase: Skills, core: Skills) -> bool:
    """Whether a phrase is a core with one more step at one end."""
    return core in (phrase[1:], phrase[:-1])
