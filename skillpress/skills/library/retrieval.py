"""Which skills of the library an episode is shown: at most K, the same for every rollout of a task.

``by_task`` is SkillRL's: skills of the task's class and general ones. Of K places half (rounded up) are for
the class and the others for S_g; what one of them leaves empty the other takes. Within each, the skills come
first that have most of their words in the task's first observation, then those that successes used most,
then by their text: what is retrieved does not hang on the order in which the library holds them.

Two controls show whether words or structure help. ``random`` draws as many skills as ``by_task`` would
show, from the whole library. ``filler`` shows the same skills with every word replaced by a word without a
meaning: an empty library of the same length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skillpress.core.seeds import generator
from skillpress.skills.library.library import GENERAL, Skill

FILLER = "<blank>"
_WORD = re.compile(r"[a-z]{4,}")


@dataclass(frozen=True)
class Query:
    """What retrieval knows of a task."""

    task_class: str
    words: frozenset[str]
    """Of the first observation, see :func:`words_of`."""
    seed: int
    """For a retrieval that draws."""


Retrieval = Callable[[Sequence[Skill], Query, int], tuple[Skill, ...]]
"""(the library's skills, the task, K) to at most K of them, in the order shown."""


def by_task(skills: Sequence[Skill], query: Query, top_k: int) -> tuple[Skill, ...]:
    """Skills of the task's class, then general ones."""

    def rank(skill: Skill) -> tuple[float, int, str]:
        return -overlap(skill, query), -skill.uses, skill.text

    ranked = sorted(skills, key=rank)
    own = [skill for skill in ranked if skill.task_class == query.task_class != GENERAL]
    said = {skill.text for skill in own}  # a skill may have become general later
    general = [skill for skill in ranked if skill.task_class == GENERAL and skill.text not in said]
    places = max(top_k - top_k // 2, top_k - len(general))
    chosen = own[:places]
    return (*chosen, *general[: top_k - len(chosen)])


def random(skills: Sequence[Skill], query: Query, top_k: int) -> tuple[Skill, ...]:
    """As many as ``by_task`` shows, drawn from the whole library by the query's seed."""
    count = len(by_task(skills, query, top_k))
    ordered = sorted(skills, key=lambda skill: skill.name)
    drawn = generator(query.seed, "random skills").permutation(len(ordered))[:count]
    return tuple(ordered[int(number)] for number in drawn)


def filler(skills: Sequence[Skill], query: Query, top_k: int) -> tuple[Skill, ...]:
    """What ``by_task`` shows, without a meaning: as many words, all the same."""
    return tuple(blank(skill) for skill in by_task(skills, query, top_k))


def blank(skill: Skill) -> Skill:
    """The skill with every word replaced."""
    return replace(
        skill,
        text=" ".join([FILLER] * len(skill.text.split())),
        phrase=(FILLER,) * len(skill.phrase),
    )


def overlap(skill: Skill, query: Query) -> float:
    """The share of the skill's words that the task's first observation has too."""
    words = words_of(skill.text)
    return len(words & query.words) / len(words) if words else 0.0


def words_of(text: str) -> frozenset[str]:
    """The words of four letters and more, which say something, in small letters."""
    return frozenset(_WORD.findall(text.lower()))
