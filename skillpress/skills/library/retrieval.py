"""Which skills of the library an episode shows: at most K, the same for every rollout of a task.

``by_task`` is SkillRL's choice: skills of the task's class and general ones. Half of the K places (rounded
up) are for the class and the others for S_g; places that one of them leaves empty go to the other. Within
each, skills are sorted by the share of their words in the task's first observation, then by how often
successes used them, then by their text. The result does not depend on the order in which the library holds
the skills.

Two controls show whether words or structure help. ``random`` draws as many skills as ``by_task`` would show,
from the whole library. ``filler`` shows the same skills with every word replaced by a word without meaning:
an empty library of the same length.
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
    """The facts about a task that retrieval uses."""

    task_class: str
    words: frozenset[str]
    """The words of the first observation, see :func:`words_of`."""
    seed: int
    """The seed of a retrieval that draws at random."""


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
    """The number of skills that ``by_task`` shows, drawn from the whole library with the query's seed."""
    count = len(by_task(skills, query, top_k))
    ordered = sorted(skills, key=lambda skill: skill.name)
    drawn = generator(query.seed, "random skills").permutation(len(ordered))[:count]
    return tuple(ordered[int(number)] for number in drawn)


def filler(skills: Sequence[Skill], query: Query, top_k: int) -> tuple[Skill, ...]:
    """The skills of ``by_task`` without their meaning: as many words, all the same."""
    return tuple(blank(skill) for skill in by_task(skills, query, top_k))


def blank(skill: Skill) -> Skill:
    """The skill with every word replaced."""
    return replace(
        skill,
        text=" ".join([FILLER] * len(skill.text.split())),
        phrase=(FILLER,) * len(skill.phrase),
    )


def overlap(skill: Skill, query: Query) -> float:
    """The share of the skill's words that also occur in the task's first observation."""
    words = words_of(skill.text)
    return len(words & query.words) / len(words) if words else 0.0


def words_of(text: str) -> frozenset[str]:
    """The words of four or more letters, in lower case. Shorter words carry little meaning."""
    return frozenset(_WORD.findall(text.lower()))
