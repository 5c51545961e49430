"""No further attempts: training learns from the algorithm's rollouts alone."""

from __future__ import annotations

from skillpress.learn.experience.experience import Experience, Setting
from skillpress.learn.experience.parameters import ExperienceParameters


class NoExperienceParameters(ExperienceParameters):
    """``experience: {name: none}``; it adds no keys."""

    def make(self, setting: Setting) -> Experience | None:
        """None: no further attempts are played."""
        return None
