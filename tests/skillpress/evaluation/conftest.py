"""Rollouts written by hand, so that every expected number can be counted on the fingers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pytest

from skillpress.trajectory import Step, Trajectory, rollout_frame

MakeEpisode = Callable[..., Trajectory]


@pytest.fixture
def episode() -> MakeEpisode:
    """``episode(task, run, actions, won)``; actions that start with ``!`` changed nothing."""

    def make(
        task: str, run: int, actions: Sequence[str], won: bool, rollout: int = 0, outcome: str = "timeout"
    ) -> Trajectory:
        steps = tuple(
            Step((1,), (2,), (0.0,), "", action.removeprefix("!"), "",
                 "wrong" if action.startswith("!") else None, 0.0)
            for action in actions
        )  # fmt: skip
        return Trajectory(
            task, f"run-{run}", rollout, steps, won, won, not won, "won" if won else outcome, 0, 0
        )

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
