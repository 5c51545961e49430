"""Experiential reinforcement learning (ERL, Shi et al. 2026, as ReuseRL's appendix B and Eq. 10 state it).

A failed episode tau1 is tried again by the same policy, in prompts that hold what it learned from the failure
(Delta). What succeeds then is learned in the plain context d, without Delta, so that the policy needs no
reflection when it is used:

    J(theta)  = E[ R(tau1) - eta 1{R(tau1) = 0, R(tau2) = 1} KL(pi(. | d, Delta) || pi(. | d)) ]     Eq. 10
    L_distill = - E[ 1{R(tau2) > 0} log pi(tau2 | d) ]                                       appendix B

The algorithm handles R(tau1), with its baseline and shaping. The loss that is added to the algorithm's is

    L = sum_t w_t (alpha (- log pi(v_t | d)) + eta KL_t),   w_t = the weight of a rollout's token

over the tokens v_t of tau2. The prompt d of each is the one that the policy would have had without Delta.
KL_t is exact, over the vocabulary, and the mean over tau2's own prefixes estimates the KL of whole responses.
Choices: pi(. | d, Delta) is held constant at the current weights. With a gradient on it the KL would also
shrink when the policy learns to ignore Delta. Seen from the trained policy this is the forward KL; the paper
calls it reverse. R is 0 or 1 here, so both indicators are equal. The two terms differ: one learns the sampled
token, the other the whole distribution.

Delta, in prompts of text, is written by the policy: it is shown the failed episode and asked what went wrong.
A policy with compact prompts has no words for that, so Delta is the failure itself: the last words of the
tried actions. As a control, random words of the policy's vocabulary replace Delta, as many as it has.

Left out of the original: reinforcement of the reflections and of second attempts in their own context
(Eq. 10 has none), reflections kept for other tasks, and a threshold on R(tau1) other than success.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from skillpress.core.interface import Reflection
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.rollouts.agents.context import shortened
from skillpress.rollouts.agents.summarize import written
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.training.algorithms.batch import SumOverRanks
from skillpress.training.experience.experience import Experience, LessonTokens, Setting
from skillpress.training.experience.parameters import ExperienceParameters

if TYPE_CHECKING:
    import torch

REQUEST = """\
But do not act yet. Think about the attempt that failed, and write down in plain words what went wrong in it
and what you will do differently this time. What you write now is all that you will know of that attempt.
"""
"""Text below the prompt. The prompt's last words say how to act."""
LEARNED = "What you learned from an attempt at this task that failed:"
LONGEST = 300
"""This many characters of each action and observation of the failed attempt are always shown."""


class ERLParameters(ExperienceParameters):
    """``experience: {name: erl, ...}``."""

    gives_knowledge: ClassVar[bool] = True

    distill: Annotated[float, Field(ge=0)]
    """alpha, weight of the log-likelihood of second successes in the plain context."""
    kl: Annotated[float, Field(ge=0)]
    """eta, weight of the KL from the context with the reflection to the plain one."""
    retries: Annotated[int, Field(ge=1)]
    """The most failed episodes of a group that are tried again; the first ones are chosen."""
    reflection: Literal["own", "random"]
    """A second attempt's knowledge. own: its text or its actions; random: as many random words."""

    @model_validator(mode="after")
    def _something_is_learned(self) -> ERLParameters:
        if not self.distill and not self.kl:
            raise ValueError("distill and kl are both 0: second attempts would teach nothing")
        return self

    @property
    def most_per_group(self) -> int:
        """The most second attempts per group."""
        return self.retries

    @property
    def compares_distributions(self) -> bool:
        """Whether the KL term has a weight."""
        return self.kl > 0

    def loss(self, tokens: LessonTokens) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """sum_t w_t (alpha (- log pi(v_t | d)) + eta KL_t), and both terms without weights as metrics."""
        surprise = -(tokens.weights * tokens.logprobs).sum()
        loss, metrics = self.distill * surprise, {"nll": surprise.detach()}
        if tokens.kl is not None:
            kl = (tokens.weights * tokens.kl).sum()
            loss, metrics["kl"] = loss + self.kl * kl, kl.detach()
        return loss, metrics

    def make(self, setting: Setting) -> ERL:
        """The method."""
        return ERL(self, setting)


@dataclass(frozen=True)
class ERL(Experience):
    """Second attempts at failed episodes, and the lessons of their successes."""

    parameters: ERLParameters
    setting: Setting

    @cached_property
    def _worded(self) -> Callable[[str], str]:
        """Maps a reflection to the knowledge of the second attempt."""
        if self.parameters.reflection == "own":
            return str
        return RandomWords(tuple(self.setting.vocabulary()), self.setting.seed)

    @property
    def reflection(self) -> Reflection | None:
        """How the policy reflects, if prompts are text; None otherwise."""
        return Reflecting(self._worded) if self.setting.words is None else None

    def attempts(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[EpisodeRequest]:
        """Requests to play the first failures of each group once more, with other seeds."""
        tried: Counter[str] = Counter()
        found = []
        for task, trajectory in zip(tasks, trajectories, strict=True):
            if not trajectory.won and tried[trajectory.group_id] < self.parameters.retries:
                tried[trajectory.group_id] += 1
                found.append(self._again(task, trajectory))
        return found

    def _again(self, task: Task, failed: Trajectory) -> EpisodeRequest:
        words = self.setting.words
        return EpisodeRequest(
            task=task,
            group_id=f"{failed.group_id}/second",
            rollout_index=failed.rollout_index,
            seed=derive(failed.seed, "second attempt"),
            policy=failed.policy,
            knowledge="" if words is None else self._worded(self._tried(failed, words)),
            attempt=account(failed, self.setting.characters) if words is None else "",
        )

    def _tried(self, failed: Trajectory, words: int) -> str:
        """The last words of a failed episode's responses."""
        said = " ".join(self.setting.decode(step.response_ids) for step in failed.steps)
        return " ".join(said.split()[-words:])

    def lessons(self, further: Sequence[Trajectory]) -> tuple[Step, ...]:
        """Every decision of a second success in a prompt that held a reflection."""
        return tuple(
            step
            for trajectory in further
            if trajectory.won
            for step in trajectory.decisions
            if step.plain_prompt_ids and step.response_ids
        )

    def metrics(self, further: Sequence[Trajectory], add: SumOverRanks) -> dict[str, float]:
        """The number of second attempts, the share that won, and the pairs (R1, R2) = (0, 1) that teach."""
        pairs = sum(bool(self.lessons([trajectory])) for trajectory in further)
        won = sum(trajectory.won for trajectory in further)
        total = add({"attempts": float(len(further)), "won": float(won), "pairs": float(pairs)})
        metrics = {"experience/attempts": total["attempts"], "experience/pairs": total["pairs"]}
        if total["attempts"]:
            metrics["experience/success"] = total["won"] / total["attempts"]
        return metrics


@dataclass(frozen=True)
class Reflecting:
    """Asks the policy for a reflection in its own words."""

    worded: Callable[[str], str]
    request: ClassVar[str] = REQUEST

    def read(self, response: str) -> ParsedAction:
        """The written reflection, as a thought."""
        return written(response)

    def knowledge(self, reflection: ParsedAction) -> str:
        """The reflection under a heading."""
        return f"{LEARNED}\n{self.worded(reflection.thought)}\n" if reflection.invalid is None else ""


@dataclass(frozen=True)
class RandomWords:
    """The control: the same number of words, drawn from a vocabulary; equal texts give equal words."""

    vocabulary: Sequence[str]
    seed: int

    def __call__(self, text: str) -> str:
        """Random words for this text."""
        random = generator(self.seed, "random words", text)
        drawn = random.integers(len(self.vocabulary), size=len(text.split()))
        return " ".join(self.vocabulary[index] for index in drawn)


def account(failed: Trajectory, characters: int) -> str:
    """The actions and observations of a failed attempt: as many of its last steps as fit."""
    lines: list[str] = []
    for number, step in reversed(list(enumerate(failed.steps, 1))):
        done, seen = (shortened(text, LONGEST) for text in (step.action or "(none)", step.observation))
        lines.insert(0, f"Step {number}: you did '{done}' and saw '{seen}'.")
        if sum(map(len, lines)) > characters and len(lines) > 1:
            del lines[0]
            break
    told = "\n".join(lines)
    return f"You have tried this task before and failed ({failed.outcome}). Your last steps then:\n{told}\n"
