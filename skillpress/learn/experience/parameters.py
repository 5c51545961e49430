"""The ``experience`` section of params.yaml, as far as every method has it.

A method's file adds its own keys to these and makes the method. An overlay that names another one replaces
the section whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from skillpress.core.registry import EXPERIENCES, lookup, named

if TYPE_CHECKING:
    from skillpress.learn.experience.experience import Experience, Setting


class ExperienceParameters(BaseModel, ABC):
    """The ``experience`` section; a method adds its own keys to these."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    gives_knowledge: ClassVar[bool] = False
    """Whether further attempts are played with ``AgentState.knowledge``: compact prompts need room for it."""

    name: str

    @property
    def most_per_group(self) -> int:
        """Further episodes per group, at most."""
        return 0

    @property
    def compares_distributions(self) -> bool:
        """Whether an update holds whole distributions over the vocabulary."""
        return False

    @abstractmethod
    def make(self, setting: Setting) -> Experience | None:
        """The method for one process of a training; None where nothing is done."""


def experience_parameters(value: Any) -> ExperienceParameters:
    """The section as the method that it names checks it.

    Raises:
        ValueError: no method has this name, or a key is wrong (pydantic names it).
    """
    if isinstance(value, ExperienceParameters):
        return value
    name = named(EXPERIENCES, value)
    made: ExperienceParameters = lookup(EXPERIENCES, name, "experience.name").model_validate(value)
    return made
