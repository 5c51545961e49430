"""The random explorer on Countdown: its exact success rate, and the published figures.

The exact probability is computed here without the library: an attempt at a puzzle with n numbers takes n - 1
operations, each drawn uniformly from the legal ones, and then a reset. Attempts are independent.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.section import SplitSizes
from skillpress.rollouts.agents import OutcomeReward, RandomExplorer, decide


@cache
def chance_of_a_try(pool: tuple[int, ...], target: int) -> float:
    """The probability that uniformly random legal operations take the pool to the target."""
    if len(pool) == 1:
        return float(pool[0] == target)
    moves = {}
    for i, a in enumerate(pool):
        for j, b in enumerate(pool):
            values = {"+": a + b, "*": a * b, "-": a - b, "/": Fraction(a, b) if b else -1}
            for operator, value in values.items():
                if i != j and value == int(value) and 0 <= value <= 999 and (a >= b or operator in "-/"):
                    rest = (pool[k] for k in range(len(pool)) if k not in (i, j))
                    moves[operator, a, b] = tuple(sorted((*rest, int(value))))
    return sum(chance_of_a_try(left, target) for left in moves.values()) / len(moves)


def chance(task: Task, budget: int) -> float:
    """The probability of winning within this many steps: attempts end at steps n - 1, 2n - 1, ..."""
    numbers = tuple(sorted(task.spec["numbers"]))
    tries = (budget + 1) // len(numbers)
    return 1 - (1 - chance_of_a_try(numbers, task.spec["target"])) ** tries


@pytest.fixture(scope="module")
def tasks(parameters: CountdownParameters) -> list[Task]:
    return list(parameters.make_tasks(SplitSizes(1200, 1, 1), 0))


def test_it_solves_what_is_known_of_it(tasks: list[Task]) -> None:
    """58%, 28% and 20% within 30, 10 and 5 steps were observed on one sample of 1024 puzzles."""
    for budget, known in ((30, 0.58), (10, 0.28), (5, 0.20)):
        assert sum(chance(task, budget) for task in tasks) / len(tasks) == pytest.approx(known, abs=0.05)


def test_in_the_environment_it_wins_exactly_as_often_as_it_must(
    parameters: CountdownParameters, tasks: list[Task]
) -> None:
    explorer = RandomExplorer(parameters.explorer_actions, OutcomeReward(10.0, 0.01))
    environment = parameters.make()
    won = expected = variance = 0.0
    for index, task in enumerate(tasks):
        observation, info = environment.reset(task)
        over = False
        for step in range(30):
            (decision,) = decide(explorer, [AgentState(task, observation, info)], [100 * index + step])
            observation, terminated, truncated, info = environment.step(decision.parsed.action)
            assert info.invalid is None
            over = terminated or truncated
            if over:
                break
        assert over
        won += info.won
        expected += chance(task, 30)
        variance += chance(task, 30) * (1 - chance(task, 30))
    assert abs(won - expected) < 4 * variance**0.5
