"""The dictionary as the page shows it: every phrase with its uses, its bits, and its life over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skillpress.reports.viewer.records import Dictionary, Phrase
from skillpress.skills.dictionary import SkillDictionary, Skills
from skillpress.skills.history import History


@dataclass(frozen=True)
class KnownPhrases:
    """The phrases in an experiment's dictionaries."""

    dictionary: SkillDictionary | None = None
    """The dictionary that cuts the episodes."""
    history: History = field(default_factory=dict)
    """The phrases over training; empty if there was no training."""
    bits: Mapping[Skills, float] = field(default_factory=dict)
    """The bits that each learned phrase saves; a missing phrase has no known saving."""

    @property
    def phrases(self) -> tuple[Skills, ...]:
        """The dictionary's phrases, numbered as in it, then those that only training had, in their order."""
        own = self.dictionary.phrases if self.dictionary else ()
        later = dict.fromkeys(phrase for step in sorted(self.history) for phrase in self.history[step])
        known = set(own)
        return (*own, *(phrase for phrase in later if phrase not in known))

    def told(self, episodes: Sequence[int]) -> Dictionary:
        """All phrases as records; ``episodes``: how many open episodes use each of the dictionary's
        phrases."""
        counts = self.dictionary.counts if self.dictionary else ()
        found = [
            Phrase(
                phrase=number,
                skills=skills,
                uses=counts[number] if number < len(counts) else 0,
                episodes=episodes[number] if number < len(episodes) else 0,
                bits=self.bits.get(skills),
                history=self._life(skills),
            )
            for number, skills in enumerate(self.phrases)
        ]
        return Dictionary(
            phrases=tuple(phrase for phrase in found if len(phrase.skills) > 1),
            singles=tuple(phrase for phrase in found if len(phrase.skills) == 1),
        )

    def _life(self, skills: Skills) -> tuple[tuple[int, int], ...] | None:
        if len(skills) == 1 or not self.history:
            return None
        return tuple((step, self.history[step].get(skills, 0)) for step in sorted(self.history))
