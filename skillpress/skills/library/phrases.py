"""New skills without a teacher: phrases of a step's dictionary, in words.

A class of tasks lacks what its successes do and its failures do not. Both are cut into the fitted
dictionary's phrases (Eq. 4). A phrase of two or more skills is worth adding if its share of the successes'
segments exceeds its share of the failures' segments. Shares are compared, not counts, because a failure that
runs out of steps holds a little of everything. A phrase is general (S_g) if the successes of every class that
has any use it. If only one class of several has successes, nothing shows that yet. All other phrases go to
the classes that have failed (S_k).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary


@dataclass(frozen=True)
class PlayedEpisode:
    """The part of a training episode that the library looks at."""

    episode: str
    """``train/17/<task>/<rollout>``."""
    task_class: str
    won: bool
    skills: Skills
    """s = φ(τ)."""
    told: str = ""
    """The episode in words, for a teacher; empty if the library has no teacher."""


def phrase_skills(
    library: SkillLibrary, played: Sequence[PlayedEpisode], dictionary: SkillDictionary, most: int
) -> tuple[Skill, ...]:
    """The skills to add: at most ``most`` general ones, and as many for each class with a failure."""
    cuts = {each.episode: _learned(dictionary, each.skills) for each in played}
    classes = sorted({each.task_class for each in played})
    used = {name: _uses(cuts, played, name, won=True) for name in classes}
    succeeded = [name for name in classes if used[name].total()]
    told_apart = len(succeeded) > 1 or len(classes) == 1
    shared = {p for p in dictionary.learned if told_apart and all(used[name][p] for name in succeeded)}
    added: list[Skill] = []
    for name in (GENERAL, *(name for name in classes if name != GENERAL)):
        those = [each for each in played if name in (GENERAL, each.task_class)]
        better = _better(cuts, those, name)
        found = [skill for skill in better if (skill.phrase in shared) == (name == GENERAL)]
        added += library.lacks(found)[:most]
    return tuple(added)


def _better(cuts: dict[str, list[Skills]], played: Sequence[PlayedEpisode], name: str) -> list[Skill]:
    """The phrases that these successes use more than these failures, the largest difference first."""
    failures = tuple(sorted(each.episode for each in played if not each.won))
    won, lost = (_uses(cuts, played, GENERAL, won=side) for side in (True, False))
    if not failures or not won.total():
        return []
    found = []
    for phrase, uses in won.items():
        success, failure = uses / won.total(), lost[phrase] / max(1, lost.total())
        if len(phrase) > 1 and success > failure:
            why = f"{success:.1%} of the segments of successes, {failure:.1%} of those of failures"
            skill = Skill(in_words(phrase), name, uses=uses, phrase=phrase, why=why, failures=failures)
            found.append((failure - success, -uses, phrase, skill))
    return [skill for *_, skill in sorted(found, key=lambda row: row[:3])]


def _learned(dictionary: SkillDictionary, skills: Skills) -> list[Skills]:
    return dictionary.segment(skills) if skills else []


def _uses(
    cuts: dict[str, list[Skills]], played: Sequence[PlayedEpisode], name: str, won: bool
) -> Counter[Skills]:
    """How often each phrase occurs in the cuts of a class's successes or failures."""
    those = (each for each in played if each.won == won and name in (GENERAL, each.task_class))
    return Counter(phrase for each in those for phrase in cuts[each.episode])


def in_words(phrase: Skills) -> str:
    """A phrase as text: ``explore, then take, then transport``."""
    return ", then ".join(label_in_words(label) for label in phrase)


def label_in_words(label: str) -> str:
    """``OP_Sub-large-near_target`` as ``op sub large near target``, ``Read_Recipe`` as ``read recipe``."""
    return " ".join(re.split(r"[\s_-]+", label.strip("_- "))).lower()
