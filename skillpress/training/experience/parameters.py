"""The keys of params.yaml's ``experience`` section that all methods share.

A method's file adds its own keys to these and makes the method. An overlay that names another one replaces
the section whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from skillpress.core.sections import Section

if TYPE_CHECKING:
    import torch

    from skillpress.training.experience.experience import Experience, LessonTokens, Setting


class ExperienceParameters(Section, ABC):
    """The ``experience`` section; a method adds its own keys to these."""

    gives_knowledge: ClassVar[bool] = False
    """Whether further attempts are played with ``AgentState.knowledge``: compact prompts need room for it."""

    name: str
    """``none``, or ``erl``: tries failures again with a reflection (docs/methods.md)."""

    @property
    def most_per_group(self) -> int:
        """The most further episodes per group."""
        return 0

    @property
    def compares_distributions(self) -> bool:
        """Whether the loss reads ``LessonTokens.kl``, so that an update holds whole distributions over the
        vocabulary in memory."""
        return False

    def loss(self, tokens: LessonTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of some tokens of lessons, and metrics; both are sums that any split of the lessons can
        add up."""
        raise NotImplementedError(f"{type(self).__name__} defines no loss, but has lessons; define loss")

    @abstractmethod
    def make(self, setting: Setting) -> Experience | None:
        """The method for one process of a training; None if there are no further attempts."""


class NoExperienceParameters(ExperienceParameters):
    """``experience: {name: none}``: training learns from the algorithm's rollouts alone."""

    def make(self, setting: Setting) -> None:
        """None: no further attempts are played."""
