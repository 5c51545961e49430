"""The workshop under another naming, for trainings: tasks, actions and rules are the workshop's own.

environment:
  name: studies.critical.controls.named_workshop:NamedWorkshop
  naming: one/one
"""

from __future__ import annotations

from pydantic import model_validator

from skillpress.environments.workshop.parameters import WorkshopParameters
from studies.critical.controls.naming import Naming


class NamedWorkshop(WorkshopParameters):
    """The workshop's section with one more key."""

    naming: str
    """Names of the routine's actions and of the shortcut's, as in ``naming.py``: ``verb/own``."""

    @model_validator(mode="after")
    def _naming_is_known(self) -> NamedWorkshop:
        self.make_projection()
        return self

    def make_projection(self) -> Naming:
        return Naming(self.naming, self.shortcut.skills)
