"""Tasks, steps and trajectories: a record of an episode in memory.

A step keeps the exact token ids that the engine received and sampled, with their log-probabilities: training
uses the sampled tokens themselves and never tokenises text again. All that an algorithm compares is among a
trajectory's fields, so a trajectory read from a file gives the same results (``rollout_files.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from skillpress.core.logprobs import EqualByValue, Logprobs, as_logprobs

TokenIds = tuple[int, ...]

Skills = tuple[str, ...]
"""Atomic skills in order: of a step, one for each call that its response makes; empty if it has none."""


@dataclass(frozen=True)
class Task:
    """One problem of one environment."""

    task_id: str
    environment: str
    seed: int
    """Seeds all randomness in the environment."""
    spec: Mapping[str, Any]
    """The environment's own description (for Countdown: target and numbers)."""
    split: str = ""
    stratum: str = ""
    """Difficulty class, for reporting."""


Kind = Literal["action", "summary", "reflection", "side"]
"""What the agent was asked for: an action for the environment, or for itself a summary of its past or a
reflection on an earlier attempt. ``side``: a step beside a program's work, such as a title."""

Credit = Literal["step", "trajectory", "mean"]
"""What a part of the reward counts for: only its own step, or the whole episode, as it is (``trajectory``) or
divided by the number of the episode's steps (``mean``), so that each step adds its share of a mean."""


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One named part of an agent's judgement of its step."""

    name: str
    value: float
    credit: Credit


@dataclass(frozen=True, slots=True)
class WeightSpan:
    """Tokens ``start`` to ``end`` (exclusive) of a response were sampled from weights ``version``."""

    version: int
    """The training step of the weights."""
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Step(EqualByValue):
    """One decision: the prompt that the policy received, its response, and the environment's answer."""

    prompt_ids: TokenIds
    response_ids: TokenIds
    logprobs: Logprobs
    """[response tokens] log-probability (nats) of each under the sampling distribution."""
    thought: str
    action: str
    """The action in the environment's canonical wording; the parsed text if it could not be read."""
    observation: str
    """The environment's answer O_{k+1}."""
    invalid: str | None
    """What was wrong: the parser's reason or the environment's (``interface.why_invalid``); None if valid."""
    reward_parts: tuple[RewardPart, ...]
    """The agent's own judgement of this step. Training adds shaping later; it is not included here."""
    weight_spans: tuple[WeightSpan, ...] = ()
    """Which weights sampled which tokens of the response, in order; empty if no tokens were sampled, or if
    the agent does not say."""
    plain_prompt_ids: TokenIds | None = None
    """The prompt without the agent's knowledge (``AgentState.knowledge``); None if it had none. Training
    reads it while the step is in memory; files do not keep it."""
    state_key: str | None = None
    """The environment's name for the state before this step (``Info.state_key``); None if it has no name, and
    in files of version 3."""

    kind: Kind = "action"
    """What the response was asked for."""
    skills: Skills | None = None
    """φ of the step when its episode had ended. None if φ was not asked: in a summary, and in files of
    version 5 and earlier. See :func:`step_skills`."""
    answer: str | None = None
    """What the step submitted as the answer to the task's question (``Info.answer``); None if nothing, and in
    files of version 5 and earlier."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "logprobs", as_logprobs(self.logprobs))

    @property
    def reward(self) -> float:
        """The sum of the parts."""
        return sum(part.value for part in self.reward_parts)


@dataclass(frozen=True, slots=True)
class Summary:
    """A decision that the environment did not see: the agent summarised its past and continues from that."""

    before: int
    """The number of the first step whose prompt shows the summary."""
    decision: Step
    """Prompt and response. Its thought is the summary, its action and observation are empty. Its kind is
    ``summary`` or ``reflection``."""

    def __post_init__(self) -> None:
        if self.decision.kind == "action":
            object.__setattr__(self, "decision", replace(self.decision, kind="summary"))


@dataclass(frozen=True)
class Trajectory:
    """One episode."""

    task_id: str
    group_id: str
    """Identifies one task's rollouts of one training step, which are compared: ``train/17/<task_id>``."""
    rollout_index: int
    steps: tuple[Step, ...]
    """The steps that the environment answered, in order; T, skills and every table count these."""
    won: bool
    terminated: bool
    truncated: bool
    outcome: str
    """``won``, ``timeout``, or the environment's name for the loss (``stuck`` ...)."""
    policy_version: int
    """The training step of the weights that played. If new weights came meanwhile (``Step.weight_spans``), it
    is that of the weights with which the group's first episode began."""
    seed: int
    first_observation: str = ""
    """O_0, before any action."""
    policy: str = ""
    """The experiment's name for the policy that played (``start``, ``trained`` ...)."""
    run: int = 0
    """Number of an evaluation's independent run, counted from 0; 0 outside evaluations."""
    summaries: tuple[Summary, ...] = ()
    """The summaries in order, each before a step; empty if the agent does not summarise its past."""

    @property
    def decisions(self) -> tuple[Step, ...]:
        """All sampled responses in order: the steps, and the summaries before some of them. Training learns
        from these."""
        return tuple(step for _, step, _ in self.in_order()) if self.summaries else self.steps

    @property
    def steps_before(self) -> tuple[int, ...]:
        """For each decision, the number of steps made before it."""
        return tuple(number for number, _, _ in self.in_order())

    @property
    def states(self) -> tuple[tuple[bool, str], ...]:
        """For each decision the state in which it was made: whether it was asked for a summary, and the
        environment's name for its state or, if it has no name, the last observation."""
        observed = (self.first_observation, *(step.observation for step in self.steps))
        return tuple(
            (summary, observed[number] if step.state_key is None else step.state_key)
            for number, step, summary in self.in_order()
        )

    @property
    def total_reward(self) -> float:
        """The undiscounted sum of the rewards of all decisions."""
        total = 0.0
        for step in self.decisions:  # sum() rounds otherwise from Python 3.12 on
            total += step.reward
        return total

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order."""
        return tuple(step.action for step in self.steps)

    def in_order(self) -> Iterator[tuple[int, Step, bool]]:
        """(number of the step, decision, whether it is a summary before that step) for all decisions."""
        for number, step in enumerate(self.steps):
            summed_up = (summary for summary in self.summaries if summary.before == number)
            yield from ((number, summary.decision, True) for summary in summed_up)
            yield number, step, False


@dataclass(frozen=True)
class SkillSequence:
    """s = φ(τ): the skills of one trajectory, step after step."""

    task_id: str
    rollout_index: int
    won: bool
    skills: Skills


Project = Callable[[Task, Trajectory], tuple[Skills, ...]]
"""φ: maps an episode to the skills of each of its steps."""


def step_skills(project: Project, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
    """The skills of each step: those that were recorded when the episode was played, else φ of it.

    Raises:
        ValueError: φ does not give a tuple for each step.
    """
    steps = len(trajectory.steps)
    recorded = tuple(step.skills for step in trajectory.steps if step.skills is not None)
    if len(recorded) == steps:
        return recorded
    found = project(task, trajectory)
    if len(found) != steps or not all(isinstance(skills, tuple) for skills in found):
        raise ValueError(
            f"φ of task {task.task_id}: got {found!r} for {steps} steps; return a tuple of skills for "
            "each step, such as ('move',), or () for a step without a skill"
        )
    return found


def skill_sequence(project: Project, task: Task, trajectory: Trajectory) -> Skills:
    """s = φ(τ): the skills of all steps, one after the other (see :func:`step_skills`)."""
    return tuple(chain.from_iterable(step_skills(project, task, trajectory)))
