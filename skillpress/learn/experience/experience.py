"""What a method of experience is: which further attempts are played, and what of them is learned in addition.

A training step plays its groups, and then the further attempts that the method asks for. They are no
rollouts of the algorithm: its advantages, the shaping and the curve's success are of the first attempts
alone. What they teach are *lessons*: decisions that were made in a prompt with knowledge in it
(``AgentState.knowledge``), to be learned in the same prompt without. Lessons are parts of the same optimizer
steps as the algorithm's samples, and a token of a lesson weighs there what a token of a rollout does.

As algorithms do, a method's file imports no torch: its loss needs only the methods of tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skillpress.core.interface import Reflection
from skillpress.core.trajectory import Step, Task, TokenIds, Trajectory
from skillpress.play.rollout.requests import EpisodeRequest

if TYPE_CHECKING:
    import torch

SumOverRanks = Callable[[dict[str, float]], dict[str, float]]
"""Adds each value up over the processes that share a training step."""


@dataclass(frozen=True)
class Setting:
    """What a method is told of the experiment it is for."""

    seed: int
    decode: Callable[[TokenIds], str]
    """Response token ids to text, without special tokens."""
    vocabulary: Callable[[], Sequence[str]]
    """All words that the policy knows, in a fixed order."""
    words: int | None
    """Words of knowledge that a compact prompt has room for; None where prompts are text."""
    characters: int
    """Characters of an earlier attempt's account that fit into a prompt of text beside all else."""


@dataclass(frozen=True)
class LessonTokens:
    """Response tokens of lessons, in their order; each tensor is [tokens]."""

    logprobs: torch.Tensor
    """log pi(v_t | plain prompt) in nats under the weights as they are now; carries the gradient."""
    kl: torch.Tensor | None
    """KL(pi(. | prompt) || pi(. | plain prompt)) in nats at each token's place, over the whole vocabulary.
    Only the second carries a gradient. None where the loss has no use for it."""
    weights: torch.Tensor
    """What a token of a rollout weighs."""


class LessonLoss(Protocol):
    """What is minimised of lessons, as a sum over tokens that any split of them can add up."""

    @property
    def compares(self) -> bool:
        """Whether it needs the KL."""
        ...

    def __call__(self, tokens: LessonTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of some tokens, and metrics: weighted sums too."""
        ...


class Experience(ABC):
    """A method; its file names its section in the registry."""

    @property
    def reflection(self) -> Reflection | None:
        """How the agent reflects on attempts that requests hold; None where none does."""
        return None

    @abstractmethod
    def attempts(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[EpisodeRequest]:
        """What is to be played beside some groups that were played.

        The group of a further attempt is named by the group it goes back to, a slash, and a word.

        Args:
            tasks: ``tasks[i]`` is what trajectory i played.
            trajectories: whole groups.
        """

    @abstractmethod
    def lessons(self, further: Sequence[Trajectory]) -> tuple[Step, ...]:
        """Decisions of further attempts that teach, each with a plain prompt and a response."""

    @abstractmethod
    def metrics(self, further: Sequence[Trajectory], add: SumOverRanks) -> dict[str, float]:
        """What a step's further attempts came to, over all processes, which all call it."""

    @property
    @abstractmethod
    def loss(self) -> LessonLoss:
        """What an update minimises of lessons."""
