"""A method of experience decides which further attempts are played and which lessons they give.

A training step plays its groups, and then the further attempts that the method asks for. Further attempts are
not rollouts of the algorithm: advantages, shaping and the curve's success use the first attempts alone.
Further attempts give *lessons*: decisions that were made in a prompt with knowledge
(``AgentState.knowledge``) and are learned in the same prompt without it. Lessons are part of the same
optimizer steps as the algorithm's samples, and a token of a lesson has the same weight as a token of a
rollout.

As algorithms do, a method's file imports no torch: its loss needs only the methods of tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillpress.core.interface import Reflection
from skillpress.core.trajectory import Step, Task, TokenIds, Trajectory
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.training.algorithms.batch import SumOverRanks

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Setting:
    """The facts that a method needs about its experiment."""

    seed: int
    decode: Callable[[TokenIds], str]
    """Response token ids to text, without special tokens."""
    vocabulary: Callable[[], Sequence[str]]
    """All words that the policy knows, in a fixed order."""
    words: int | None
    """The most words of knowledge in a compact prompt; None where prompts are text."""
    characters: int
    """The most characters of an earlier attempt's account that fit into a prompt of text."""


@dataclass(frozen=True)
class LessonTokens:
    """Response tokens of lessons, in their order; each tensor is [tokens]."""

    logprobs: torch.Tensor
    """log pi(v_t | plain prompt) in nats under the current weights; carries the gradient."""
    kl: torch.Tensor | None
    """KL(pi(. | prompt) || pi(. | plain prompt)) in nats at each token's place, over the whole vocabulary.
    Only pi(. | plain prompt) carries a gradient. None where the loss does not need it."""
    weights: torch.Tensor
    """Weights of the tokens, the same as those of a rollout's tokens."""


class Experience(ABC):
    """A method of experience."""

    @property
    def reflection(self) -> Reflection | None:
        """How the agent reflects on the attempts in its requests; None if no request has one."""
        return None

    @abstractmethod
    def attempts(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[EpisodeRequest]:
        """Episodes to play in addition to some played groups.

        The group name of a further attempt is the name of its first group, a slash, and a word.

        Args:
            tasks: ``tasks[i]`` is the task of trajectory i.
        """

    @abstractmethod
    def lessons(self, further: Sequence[Trajectory]) -> tuple[Step, ...]:
        """The decisions of further attempts that teach, each with a plain prompt and a response."""

    @abstractmethod
    def metrics(self, further: Sequence[Trajectory], add: SumOverRanks) -> dict[str, float]:
        """Metrics of a step's further attempts, over all processes; all of them call this."""
