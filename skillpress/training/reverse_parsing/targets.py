"""(X, A*): states, and the action that is known to be right in each.

The right action is the oracle's, or that of the rollout that won its task in the fewest steps. Both are
played again in the environment, so the states are those in which a policy would act.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillpress.core.interface import AgentState
from skillpress.core.parsed_action import Parser
from skillpress.core.trajectory import Task, Trajectory
from skillpress.training.imitation.demonstrations import DemonstratedStep


@dataclass(frozen=True)
class Target:
    """One state and the right action in it."""

    state: AgentState
    """X."""
    step: int
    """k, from 0."""
    action: str
    """A*, as the parser reads it."""
    thought: str
    """The thought of the demonstrator's own response; empty if it has none."""
    response: str
    """The demonstrator's own response."""


def targets_of(demonstration: Sequence[DemonstratedStep], parse: Parser) -> list[Target]:
    """The targets of one demonstration, without steps that the environment refused or the parser cannot
    read."""
    following = [step.state.info.invalid for step in demonstration[1:]] + [None]
    found = []
    for number, (step, refused) in enumerate(zip(demonstration, following, strict=True)):
        parsed = parse(step.response)
        if refused is None and parsed.invalid is None:
            target = Target(
                state=step.state,
                step=number,
                action=parsed.action,
                thought=parsed.thought,
                response=step.response,
            )
            found.append(target)
    return found


@dataclass(frozen=True)
class Recorded:
    """An oracle that repeats recorded actions."""

    actions: Mapping[str, list[str]]
    """Task to its recorded actions."""

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """See ``environments.section.Oracle``; it makes no detours beyond the recorded ones."""
        return self.actions[task.task_id]


def shortest_successes(trajectories: Iterable[Trajectory]) -> dict[str, list[str]]:
    """Task to the actions of its shortest success, the earliest of several; only tasks with a success."""
    found: dict[str, list[str]] = {}
    for trajectory in trajectories:
        best = found.get(trajectory.task_id)
        if trajectory.won and (best is None or len(trajectory.actions) < len(best)):
            found[trajectory.task_id] = list(trajectory.actions)
    return found
