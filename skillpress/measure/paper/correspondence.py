"""Table 11 measured on one run: phrases of its dictionary beside skills of its own library.

The paper lists five phrases of ALFWorld's dictionary, each with the skill of SkillRL's library that says the
same; it matched them by reading. Here each phrase is looked up in both libraries of a run: in the dictionary
of its last training step, with its place among the learned phrases by their uses, and in its skill library.
A skill that was made from the very phrase is the phrase's. A teacher's skill was made from none: the one
that has most words in common with the paper's is named, with the share of words in common, and whether it
says the same is left to the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary
from skillpress.skills.library.retrieval import words_of

Skills = tuple[str, ...]


@dataclass(frozen=True)
class Correspondence:
    """One of the paper's pairs, in a run."""

    phrase: Skills
    printed: str
    """The skill that SkillRL has for it, as the paper words it."""
    uses: int | None
    """Of the phrase in the dictionary, 0 where it is not in it; None where the run has no dictionary."""
    rank: int | None
    """Its place among the dictionary's learned phrases, 1 for the one used most; None where it has none."""
    step: int | None
    """The training step after which a skill of this phrase came into the library; None where none did."""
    classes: tuple[str, ...]
    """The classes of tasks that have such a skill; ``general`` for all."""
    closest: str
    """The teacher's skill with most words in common; empty where a teacher wrote none."""
    overlap: float
    """The share of both skills' words that they have in common."""


def correspondences(
    named: Mapping[Skills, str], dictionary: Mapping[Skills, int] | None, library: SkillLibrary
) -> list[Correspondence]:
    """A row for each of the paper's phrases.

    Args:
        named: phrase to the skill that the paper found closest.
        dictionary: learned phrases and their uses; None where nothing was trained.
        library: empty where the run has none.
    """
    ranked = sorted(dictionary or {}, key=lambda phrase: (-(dictionary or {})[phrase], phrase))
    written = [skill for skill in library.skills if not skill.phrase]
    found = []
    for phrase, printed in named.items():
        closest, overlap = _closest(written, printed)
        added = [(v.step, s) for v in library.versions for s in v.added if s.phrase == phrase]
        found.append(
            Correspondence(
                phrase=phrase,
                printed=printed,
                uses=None if dictionary is None else dictionary.get(phrase, 0),
                rank=ranked.index(phrase) + 1 if phrase in ranked else None,
                step=added[0][0] if added else None,
                classes=tuple("general" if s.task_class == GENERAL else s.task_class for _, s in added),
                closest=closest,
                overlap=overlap,
            )
        )
    return found


def _closest(skills: list[Skill], printed: str) -> tuple[str, float]:
    """(text, share of words in common) of the skill that has most in common with the paper's."""
    wanted = words_of(printed)
    ranked = [
        (len(words_of(skill.text) & wanted) / len(words_of(skill.text) | wanted), skill.text)
        for skill in skills
    ]
    overlap, text = max(ranked, default=(0.0, ""))
    return text, overlap
