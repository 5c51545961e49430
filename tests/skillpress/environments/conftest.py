"""Episodes of a real world, from the actions that somebody takes in it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from skillpress.evaluation import paper
from skillpress.interface import Environment, Info
from skillpress.rollout.collector import outcome
from skillpress.trajectory import Step, Task, Trajectory

Choose = Callable[[int, Info], tuple[str, str]]
"""(step number, what the world last said) to (thought, action)."""


def play_episode(world: Environment, task: Task, choose: Choose, rollout: int = 0) -> Trajectory:
    """One episode to its end; ``choose`` may raise IndexError to give up, as scripts do at their end."""
    _, info = world.reset(task)
    steps: list[Step] = []
    terminated = truncated = False
    while not (terminated or truncated):
        thought, action = choose(len(steps), info)
        observation, terminated, truncated, info = world.step(action)
        steps.append(
            Step((), (), (), thought, info.action or action, observation, info.invalid, 0.0)
        )  # fmt: skip
    return Trajectory(
        task.task_id, "0/run-0", rollout, tuple(steps), info.won, terminated, truncated, outcome(info), 0, 0
    )


@pytest.fixture(scope="session")
def play() -> Callable[..., Trajectory]:
    """``play(world, task, choose)``: a trajectory."""
    return play_episode


@pytest.fixture(scope="session")
def script() -> Callable[[Sequence[str]], Choose]:
    """Takes the given actions in order, without a thought."""
    return lambda actions: lambda number, info: ("", actions[number])


@pytest.fixture(scope="session")
def printed_rows() -> Callable[[int, str], list[str]]:
    """(table, environment) to the keys of the paper's rows, in the paper's order."""
    with (Path(paper.__file__).parent / "paper_figures.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return lambda table, environment: [
        row["figure"] for row in rows if (row["table"], row["environment"]) == (str(table), environment)
    ]
