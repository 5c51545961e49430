"""The number of different skills of a success: a charge for names, without any phrase.

reward:
  shaping: studies.critical.controls.distinct:DistinctSkills
"""

from __future__ import annotations

import numpy as np

from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.shaping import Floats, Played, Shaping, StepSkills


class DistinctSkills(Shaping):
    """λ · [success] · (different skills of s) / T."""

    def __call__(self, played: Played, dictionary: SkillDictionary | None) -> Floats:
        """See :class:`Shaping`; the dictionary is not read."""
        names = np.array([len(set(sequence)) for sequence in played.sequences], np.float64)
        return self.weight / self.max_steps * names * np.array(played.won, np.float64)

    def of_steps(self, skills: StepSkills, dictionary: SkillDictionary | None) -> Floats:
        """A step pays for the skills that no earlier step has."""
        known: set[str] = set()
        new = []
        for each in skills:
            new.append(len(set(each) - known))
            known.update(each)
        return self.weight / self.max_steps * np.array(new, np.float64)
