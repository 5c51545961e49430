"""Table 11 measured on one run: phrases of its dictionary compared with skills in its library.

The paper lists five phrases of ALFWorld's dictionary, each with the skill of SkillRL's library that says the
same; it matched them by reading. Here each phrase is looked up in two places of a run: in the dictionary of
its last training step, with its rank by uses among the learned phrases, and in its skill library. A skill
that was made from exactly this phrase matches it. A teacher's skill is not made from a phrase. So the table
names the teacher's skill that shares most words with the paper's, with the share of common words; the reader
decides whether it says the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary
from skillpress.skills.library.retrieval import words_of

Skills = tuple[str, ...]


@dataclass(frozen=True)
class Correspondence:
    """One of the paper's pairs, looked up in a run."""

    phrase: Skills
    printed: str
    """SkillRL's skill for the phrase, in the paper's words."""
    uses: int | None
    """Uses of the phrase in the dictionary, 0 if it is not in it; None if the run has no dictionary."""
    rank: int | None
    """Its rank among the dictionary's learned phrases, 1 for the most used; None if it is not among them."""
    step: int | None
    """The training step after which the library got a skill of this phrase; None if it never did."""
    classes: tuple[str, ...]
    """The classes of tasks with such a skill; ``general`` for all."""
    closest: str
    """The teacher's skill with the most words in common; empty if no teacher wrote any."""
    overlap: float
    """The share of both skills' words that they have in common."""


def correspondences(
    named: Mapping[Skills, str], dictionary: Mapping[Skills, int] | None, library: SkillLibrary
) -> list[Correspondence]:
    """One row for each of the paper's phrases.

    Args:
        named: phrase to the skill that the paper found closest.
        dictionary: learned phrases and their uses; None if nothing was trained.
        library: empty if the run has none.
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
    """(text, share of words in common) of the skill that shares most words with the paper's."""
    wanted = words_of(printed)
    ranked = [
        (len(words_of(skill.text) & wanted) / len(words_of(skill.text) | wanted), skill.text)
        for skill in skills
    ]
    overlap, text = max(ranked, default=(0.0, ""))
    return text, overlap
