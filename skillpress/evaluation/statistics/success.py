"""Pass@1 and SC@k (Table 1).

Pass@1 is the share of episodes won, per run; then come the mean and the sample standard deviation over runs.
SC@k counts a task as solved in a run if more than half of its k episodes are won. Both come with Wilson's
interval over tasks: the deviation says how much a rerun moves the figure, the interval how much other tasks
of the same kind would.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from skillpress.core.intervals import effective_tasks, wilson
from skillpress.evaluation.statistics.episodes import RUN_KEY


@dataclass(frozen=True)
class SuccessRate:
    """A share of successes with its two kinds of uncertainty and the episodes behind it."""

    mean: float
    """Mean over runs, in [0, 1]."""
    std: float | None
    """Sample standard deviation over runs; None for a single run."""
    per_run: tuple[float, ...]
    """One rate per run, in the order of training seeds and runs."""
    low: float
    """Lower end of Wilson's 95% interval over tasks."""
    high: float
    """Upper end of the interval."""
    tasks: int
    episodes: int
    """Number of episodes over all runs."""

    def __str__(self) -> str:
        """``81.2% (80.1 to 82.3)``."""
        return f"{self.mean:.1%} ({100 * self.low:.1f} to {100 * self.high:.1f})"


def pass_at_1(episodes: pl.DataFrame) -> SuccessRate:
    """The share of episodes won. ``episodes``: rows of ``episode_table``; runs have the same tasks."""
    return _rate(episodes, episodes.select(*RUN_KEY, "task_id", solved="won"))


def self_consistency(episodes: pl.DataFrame, votes: int) -> SuccessRate:
    """SC@k: the share of tasks with a majority of wins among their k = ``votes`` episodes of a run."""
    return _rate(episodes, verdicts_of(episodes, votes))


def verdicts_of(episodes: pl.DataFrame, votes: int) -> pl.DataFrame:
    """One row per run and task: its key and ``solved`` (more than half of the votes won).

    Raises:
        ValueError: ``votes`` is even, so a vote could tie.
    """
    if votes % 2 == 0:
        raise ValueError(f"SC@{votes}: votes must be odd, so that no vote can tie")
    return episodes.group_by(*RUN_KEY, "task_id").agg(solved=pl.col("won").sum() * 2 > votes)


def _rate(episodes: pl.DataFrame, verdicts: pl.DataFrame) -> SuccessRate:
    runs = verdicts.group_by(RUN_KEY).agg(pl.col("solved").mean()).sort(RUN_KEY)["solved"]
    mean = float(runs.to_numpy().mean())
    std = float(runs.to_numpy().std(ddof=1)) if len(runs) > 1 else None
    played = verdicts.select(*RUN_KEY, "task_id").unique()
    of_run = pl.len().over(RUN_KEY)
    weights = (
        played.select("task_id", share=1 / (len(runs) * of_run))
        .group_by("task_id")
        .agg(pl.col("share").sum())
    )
    interval = wilson(min(mean, 1.0), effective_tasks(weights["share"].to_numpy()))  # ones may round above 1
    return SuccessRate(
        mean=mean,
        std=std,
        per_run=tuple(runs.to_list()),
        low=interval.low,
        high=interval.high,
        tasks=weights.height,
        episodes=episodes.height,
    )
