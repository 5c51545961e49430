"""Episodes written by hand, so that every number can be counted on the fingers, and episodes of a real
environment, from the actions that somebody takes in it; and a browser for the pages that are made of them."""

from __future__ import annotations

import asyncio
import csv
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from skillpress.core.interface import Environment, Info
from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.evaluation.paper import layout
from skillpress.rollouts.collection.collector import outcome
from tests.support.episodes import made_trajectory

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Choose = Callable[[int, Info], tuple[str, str]]
"""(step number, what the environment last said) to (thought, action)."""
MakeEpisode = Callable[..., Trajectory]
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
"""Arguments of a Chromium that asks nobody for anything by itself."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """Chromium, without a window, and the event loop that talks to it, which stands still between modules."""
    from playwright.sync_api import sync_playwright  # environments of vLLM's tests have none

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("no Chromium on PATH to look at pages with; install Debian's package `chromium`")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=QUIET)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield launched, loop
        asyncio._set_running_loop(loop)
        launched.close()


@pytest.fixture(scope="module")
def browser(chromium: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The worker's one Chromium, without pages of an earlier module.

    Playwright's loop counts as running in this thread as long as it is there, and tests of other modules
    run loops of their own. So Python is told of it for a module at a time.
    """
    launched, loop = chromium
    asyncio._set_running_loop(loop)
    yield launched
    for context in launched.contexts:
        context.close()
    asyncio._set_running_loop(None)


def play_episode(environment: Environment, task: Task, choose: Choose, rollout: int = 0) -> Trajectory:
    """One episode to its end; ``choose`` may raise IndexError to give up, as scripts do at their end."""
    _, info = environment.reset(task)
    steps: list[Step] = []
    terminated = truncated = False
    while not (terminated or truncated):
        thought, action = choose(len(steps), info)
        observation, terminated, truncated, info = environment.step(action)
        steps.append(
            Step((), (), (), thought, info.action or action, observation, info.invalid, ())
        )  # fmt: skip
    known = {"terminated": terminated, "truncated": truncated, "outcome": outcome(info)}
    name = f"run-0/{task.task_id}"
    return made_trajectory(
        steps, info.won, task_id=task.task_id, group_id=name, rollout_index=rollout, **known
    )


@pytest.fixture(scope="session")
def play() -> Callable[..., Trajectory]:
    """``play(environment, task, choose)``: a trajectory."""
    return play_episode


@pytest.fixture(scope="session")
def script() -> Callable[[Sequence[str]], Choose]:
    """Takes the given actions in order, without a thought."""
    return lambda actions: lambda number, info: ("", actions[number])


@pytest.fixture(scope="session")
def printed_rows() -> Callable[[int, str], list[str]]:
    """(table, environment) to the keys of the paper's rows, in the paper's order."""
    with (Path(layout.__file__).parent / "printed_figures.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return lambda table, environment: [
        row["figure"] for row in rows if (row["table"], row["environment"]) == (str(table), environment)
    ]


@pytest.fixture
def episode() -> MakeEpisode:
    """``episode(task, run, actions, won)``; actions that start with ``!`` changed nothing."""

    def make(
        task: str, run: int, actions: Sequence[str], won: bool, rollout: int = 0, outcome: str = "timeout"
    ) -> Trajectory:
        steps = tuple(
            Step((1,), (2,), (0.0,), "", action.removeprefix("!"), "",
                 "wrong" if action.startswith("!") else None, ())
            for action in actions
        )  # fmt: skip
        return Trajectory(
            task, f"run-{run}/{task}", rollout, steps, won, won, not won, "won" if won else outcome, 0, 0,
            run=run,
        )  # fmt: skip

    return make


@pytest.fixture
def outcomes(episode: MakeEpisode) -> Callable[..., pl.DataFrame]:
    """``outcomes({"a": "101"})``: one step per episode; the digits of a task are its runs' wins."""

    def make(wins: dict[str, str], votes: int = 1, steps: int = 1) -> pl.DataFrame:
        return rollout_frame(
            episode(task, index // votes, ["go"] * steps, digit == "1", rollout=index % votes)
            for task, digits in wins.items()
            for index, digit in enumerate(digits)
        )

    return make
