"""A small program of our own, with its tests, and a judge shared by all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpress.environments.code_repair.environment import LIMITS, RepairEpisode
from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.programs import Check, Program, all_programs
from skillpress.environments.sandboxed import SandboxedEnvironment
from skillpress.rollouts.sandbox import Sandbox

FAULTY = """\
def largest(numbers):
    found = numbers[0]
    for number in numbers:
        if number < found:
            found = number
    return found
"""
CASES = (([1, 3, 2], 3), ([5], 5), ([-4, -2, -9], -2), ([2, 2], 2), ([0, 10, 7], 10))


def case(numbers: list[int], expected: int) -> Check:
    return Check(f"assert largest({numbers}) == {expected}", ("largest",))


@pytest.fixture(scope="session")
def program() -> Program:
    """The largest number of a list; the bug is one comparison."""
    return Program(
        source="ours",
        name="largest",
        entry="largest",
        faulty=FAULTY,
        correct=FAULTY.replace("<", ">"),
        description="The largest of some numbers.",
        visible=tuple(case(*each) for each in CASES[:2]),
        hidden=tuple(case(*each) for each in CASES),
    )


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """A judge with half a second for each call."""
    judge = Judge(test_seconds=0.5)
    yield judge
    judge.close()


@pytest.fixture
def repair(program: Program, judge: Judge) -> Iterator[SandboxedEnvironment]:
    """An environment with only this program, and 12 steps."""
    environment = SandboxedEnvironment(
        lambda task, sandbox: RepairEpisode(program, judge, sandbox, max_steps=12, measure_edits=True),
        lambda: Sandbox.start(LIMITS),
        seconds=60.0,
    )
    yield environment
    environment.close()


@pytest.fixture(scope="session")
def programs(code_repair_data: Path) -> dict[str, Program]:
    """All programs of both data sets."""
    return all_programs(code_repair_data)
