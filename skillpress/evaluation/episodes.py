"""From one row per step to one row per episode, the table that every figure is computed from.

An evaluation is a rectangle: every run visits every task exactly ``votes`` times. What is not that
rectangle (a task missing, visited too often, or unknown) is refused here, before any figure is
computed, because a rate over the wrong tasks looks just like a right one.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from skillpress.errors import UserError
from skillpress.interface import FORMAT_REASONS, LET_THROUGH

RUN_KEY = ("training_seed", "run")
"""Which of the trainings, and which of the independent runs of its evaluation."""
EPISODE_KEY = (*RUN_KEY, "task_id", "rollout_index")
"""Run, task, and the number of the episode among those of that task in that run."""
_STEP_COLUMNS = (
    "run", "task_id", "rollout_index", "step", "thought", "action", "observation", "invalid", "won",
    "outcome", "policy_version",
)  # fmt: skip


class EvaluationError(UserError):
    """The rollouts are not a whole evaluation; the message says which task and how many episodes."""


def evaluation_steps(rollouts: pl.DataFrame | pl.LazyFrame, training_seed: int = 0) -> pl.DataFrame:
    """The columns that evaluation needs (tokens stay on disk), sorted by run, task, rollout, step.

    Args:
        training_seed: the seed that the policy was trained with, where several trainings are pooled.
    """
    seeded = rollouts.lazy().select(_STEP_COLUMNS).with_columns(training_seed=pl.lit(training_seed, pl.Int64))
    return seeded.select("training_seed", *_STEP_COLUMNS).sort(*EPISODE_KEY, "step").collect()


def episode_table(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per episode: its key, ``length`` (steps), ``won``, ``outcome``, ``invalid_steps``,
    ``malformed_steps`` (those of them that the parser could not read) and ``repeated_steps`` (steps
    whose action had already been taken in the same episode; a step without an action repeats none).

    Raises:
        EvaluationError: an episode has a gap or a step twice, so its file is damaged or merged.
    """
    taken = pl.col("action").filter(pl.col("action") != "")
    table = steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("length"),
        pl.col("won").first(),
        pl.col("outcome").first(),
        pl.col("invalid").is_not_null().sum().cast(pl.Int64).alias("invalid_steps"),
        malformed().sum().cast(pl.Int64).alias("malformed_steps"),
        (taken.len().cast(pl.Int64) - taken.n_unique().cast(pl.Int64)).alias("repeated_steps"),
        (pl.col("step").sort() == pl.int_range(pl.len())).all().alias("whole"),
    )
    broken = table.filter(~pl.col("whole"))
    if broken.height:
        row = broken.row(0, named=True)
        raise EvaluationError(
            f"task {row['task_id']} of run-{row['run']}, rollout {row['rollout_index']}: its "
            f"{row['length']} steps are not numbered 0 to {row['length'] - 1} once each"
        )
    return table.drop("whole")


def malformed() -> pl.Expr:
    """Whether a step's response had not the format that the parser reads."""
    return pl.col("invalid").str.split("+").list.first().is_in(FORMAT_REASONS).fill_null(False)


def carried_out() -> pl.Expr:
    """Whether the environment carried out a step's action; a lenient parser hands on malformed ones too."""
    reason = pl.col("invalid")
    return reason.is_null() | (reason.is_in(LET_THROUGH) & (pl.col("action") != ""))


def check_complete(episodes: pl.DataFrame, task_ids: Sequence[str], runs: int, votes: int) -> None:
    """Every run holds every task exactly ``votes`` times, and nothing else.

    Raises:
        EvaluationError: it does not; the message names the first task and its count.
    """
    found = episodes.select(RUN_KEY).unique().sort(RUN_KEY)
    if len(found) != runs:
        names = ", ".join(f"run-{run}" for run in found["run"]) or "none"
        raise EvaluationError(f"{runs} runs were asked for, the rollouts hold {len(found)}: {names}")
    wanted = found.join(pl.DataFrame({"task_id": task_ids}, schema={"task_id": pl.String}), how="cross")
    key = [*RUN_KEY, "task_id"]
    counts = episodes.group_by(key).len("count")
    foreign = counts.join(wanted, on=key, how="anti")
    if foreign.height:
        raise EvaluationError(f"task {foreign['task_id'].sort()[0]} was run but is not in the task list")
    wrong = (
        wanted.join(counts, on=key, how="left")
        .with_columns(pl.col("count").fill_null(0))
        .filter(pl.col("count") != votes)
        .sort(key)
    )
    if wrong.height:
        row = wrong.row(0, named=True)
        raise EvaluationError(
            f"task {row['task_id']} has {row['count']} episodes in run-{row['run']}, must have {votes} "
            f"({wrong.height} such tasks)"
        )
