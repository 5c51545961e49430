"""The dictionary of an observer who knows the routines: a search that ignores the outcomes of episodes.

    skills:
      search: skillpress.environments.workshop.routines:search_routines

Its phrases are [Go, Take, work] and [Go, Take, work, Deliver] for every work. With L = 4 they cut a routine
of g sub-goals, 3 g + 1 skills, into g segments, one for each sub-goal. For g up to 4 no dictionary gives
fewer segments, since g = ceil((3 g + 1) / 4).
"""

from __future__ import annotations

from itertools import product

from skillpress.environments.workshop.actions import SUBGOALS, SYNONYMS
from skillpress.environments.workshop.skills import PROJECTION, skill_of
from skillpress.skills.corpus import Corpus, FoundPhrases, Phrase


def search_routines(corpus: Corpus, max_phrase_length: int, seed: int) -> FoundPhrases:
    """The routines' phrases of at most ``max_phrase_length`` skills: 16, and with the corpus's synonyms all
    combinations of those that occur in it (288 if all do). Nothing is random.

    Raises:
        ValueError: the corpus is not of the workshop's skills.
    """
    alphabet = PROJECTION.alphabet
    if corpus.alphabet_size != len(alphabet):
        raise ValueError(
            f"the corpus has {corpus.alphabet_size} skills, but the routines are phrases of the workshop's "
            f"{len(alphabet)}: use another skills.search, such as greedy"
        )
    position = {skill: number for number, skill in enumerate(alphabet)}
    present = {skill for sequence, _ in corpus for skill in sequence}
    go, take, deliver = (_said(verb, position, present) for verb in ("go", "take", "deliver"))
    works = [position[skill_of(subgoal)] for subgoal in SUBGOALS]
    phrases: list[Phrase] = [*product(go, take, works), *product(go, take, works, deliver)]
    return FoundPhrases([phrase for phrase in phrases if len(phrase) <= max_phrase_length])


def _said(verb: str, position: dict[str, int], present: set[int]) -> list[int]:
    """The skills of a verb and of its synonyms in the corpus."""
    skills = [position[skill_of(synonym)] for synonym in SYNONYMS[verb]]
    return [skill for skill in skills if skill == skills[0] or skill in present]
