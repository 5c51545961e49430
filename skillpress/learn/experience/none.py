"""No experience beside the rollouts that the algorithm learns from."""

from __future__ import annotations

from skillpress.learn.experience.experience import Experience, Setting
from skillpress.learn.experience.parameters import ExperienceParameters


class NoExperienceParameters(ExperienceParameters):
    """``experience: {name: none}``; it has no keys of its own."""

    def make(self, setting: Setting) -> Experience | None:
        """Nothing."""
        return None
