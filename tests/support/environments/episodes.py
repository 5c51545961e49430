"""Episodes whose actions a test gives."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.interface import AgentState, Environment, Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.agents import Window

Answer = tuple[str, bool, bool, Info]


def play(environment: Environment, task: Task, actions: Sequence[str]) -> list[Answer]:
    """The environment's answers up to the end of the episode or of the actions."""
    environment.reset(task)
    answers: list[Answer] = []
    for action in actions:
        answers.append(environment.step(action))
        if answers[-1][1] or answers[-1][2]:
            break
    return answers


def state_after(environment: Environment, task: Task, *actions: str, keep: int = 9) -> AgentState:
    """The agent's state after these actions, with so many turns."""
    update = Window(keep)
    state = AgentState(task, *environment.reset(task))
    for action in actions:
        observation, _, _, info = environment.step(action)
        state = update(state, "", action, observation, info)
    return state
