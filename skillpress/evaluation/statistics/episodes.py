"""Turn one row per step into one row per episode, the table behind every figure.

Steps stay on disk. They are read a few whole episodes at a time, and memory holds only the results: a row per
episode.

An evaluation is a rectangle: every run visits every task exactly ``votes`` times. A task that is missing,
visited too often or unknown is refused here, before any figure is computed, because a rate over the wrong
tasks looks just like a right one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from skillpress.core.errors import UserError
from skillpress.core.parsed_action import FORMAT_REASONS, LET_THROUGH
from skillpress.core.rollout_files import TAKEN, stretches
from skillpress.core.trajectory import Task

RUN_KEY = ("training_seed", "run")
"""The training, and the independent run of its evaluation."""
EPISODE_KEY = (*RUN_KEY, "task_id", "rollout_index")
"""Run, task, and the number of the episode among the episodes of that task in that run."""
_STEP_COLUMNS = (
    "run", "task_id", "rollout_index", "step", "thought", "action", "observation", "invalid", "won",
    "outcome", "policy_version", "first_observation", "skills",
    "answer",
)  # fmt: skip


class EvaluationError(UserError):
    """The rollouts are not a complete evaluation; the message says which task and how many episodes."""


@dataclass(frozen=True)
class _Part:
    """The steps of one training's evaluation."""

    training_seed: int
    rows: pl.LazyFrame
    """Rows of ``ROLLOUT_SCHEMA``; the rows of an episode follow each other."""
    keep: pl.Expr

    def stretches(self) -> Iterator[pl.DataFrame]:
        """Whole episodes with the columns that evaluation needs, sorted, and without summaries."""
        for rows in stretches(self.rows, EPISODE_KEY[1:], self.keep & TAKEN, _STEP_COLUMNS):
            seeded = rows.select(pl.lit(self.training_seed, pl.Int64).alias("training_seed"), *_STEP_COLUMNS)
            yield seeded.sort(*EPISODE_KEY, "step")


@dataclass(frozen=True)
class EvaluationSteps:
    """The steps of an evaluation, or of several pooled trainings: their files, and which steps of these."""

    parts: tuple[_Part, ...]
    """One or more parts."""

    def filter(self, keep: pl.Expr) -> EvaluationSteps:
        """The steps of the episodes for which the expression holds; it must hold for whole episodes."""
        return EvaluationSteps(tuple(replace(part, keep=part.keep & keep) for part in self.parts))

    def of(self, tasks: Iterable[Task]) -> EvaluationSteps:
        """The steps of the episodes of these tasks."""
        return self.filter(pl.col("task_id").is_in([task.task_id for task in tasks]))

    def stretches(self) -> Iterator[pl.DataFrame]:
        """The rows that evaluation needs (tokens stay on disk), a few whole episodes at a time. Each chunk is
        sorted by run, task, rollout and step, and has ``training_seed``."""
        for part in self.parts:
            yield from part.stretches()

    def per_episode(self, table: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
        """The results of ``table`` for all steps, by run, task and rollout.

        Args:
            table: from rows of :meth:`stretches` to one row per episode with its ``EPISODE_KEY``.

        Raises:
            EvaluationError: the rows of an episode do not follow each other, so the file was merged.
        """
        tables = [pl.concat(map(table, part.stretches())).sort(EPISODE_KEY) for part in self.parts]
        found = pl.concat(tables)
        twice = found.filter(found.select(EPISODE_KEY).is_duplicated())
        if twice.height:
            raise EvaluationError(f"{_named(twice)} is in several places, so its file was merged")
        return found

    def counts(self, kind: pl.Expr) -> Counter[Any]:
        """Each value of the expression to the number of steps that have it."""
        found: Counter[Any] = Counter()
        for rows in self.stretches():
            found.update(dict(rows.group_by(kind.alias("kind")).len().iter_rows()))
        return found


def evaluation_steps(rollouts: pl.DataFrame | pl.LazyFrame, training_seed: int = 0) -> EvaluationSteps:
    """The steps of a rollout file that is being scanned, or of a frame; the seed is that of the training."""
    return EvaluationSteps((_Part(training_seed, rollouts.lazy(), pl.lit(True)),))


def pooled(evaluations: Iterable[EvaluationSteps]) -> EvaluationSteps:
    """The steps of several trainings, one after the other."""
    return EvaluationSteps(tuple(part for steps in evaluations for part in steps.parts))


def episode_table(steps: EvaluationSteps) -> pl.DataFrame:
    """One row per episode: its key, ``length`` (steps), ``won``, ``outcome``, ``invalid_steps``, of these
    ``refused_steps`` (the action was not carried out) and ``malformed_steps`` (the response had a bad
    format; a step may be both), and ``repeated_steps`` (steps with an action that was taken before in the
    same episode; a step without an action does not count).

    Raises:
        EvaluationError: an episode has a gap or a duplicate step, so its file is damaged or merged.
    """
    return steps.per_episode(_episodes)


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    taken = pl.col("action").filter(pl.col("action") != "")
    figures = [
        pl.len().cast(pl.Int64).alias("length"),
        pl.col("won").first(),
        pl.col("outcome").first(),
        pl.col("invalid").is_not_null().sum().cast(pl.Int64).alias("invalid_steps"),
        (~carried_out()).sum().cast(pl.Int64).alias("refused_steps"),
        malformed().sum().cast(pl.Int64).alias("malformed_steps"),
        (taken.len().cast(pl.Int64) - taken.n_unique().cast(pl.Int64)).alias("repeated_steps"),
        (pl.col("step").sort() == pl.int_range(pl.len())).all().alias("whole"),
    ]
    table = steps.group_by(EPISODE_KEY, maintain_order=True).agg(figures)
    broken = table.filter(~pl.col("whole"))
    if broken.height:
        length = broken["length"][0]
        raise EvaluationError(
            f"{_named(broken)}: its {length} steps are not numbered 0 to {length - 1} once each"
        )
    return table.drop("whole")


def _named(episodes: pl.DataFrame) -> str:
    row = episodes.row(0, named=True)
    return f"task {row['task_id']} of run-{row['run']}, rollout {row['rollout_index']}"


def malformed() -> pl.Expr:
    """Whether a step's response did not have the format that the parser reads."""
    return pl.col("invalid").str.split("+").list.first().is_in(FORMAT_REASONS).fill_null(False)


def carried_out() -> pl.Expr:
    """Whether the environment carried out a step's action; a lenient parser passes on malformed ones."""
    reason = pl.col("invalid")
    return reason.is_null() | (reason.is_in(LET_THROUGH) & (pl.col("action") != ""))


def was_carried_out(action: str, reason: str | None) -> bool:
    """The same of one step, whose record gives this reason for being invalid."""
    return reason is None or (reason in LET_THROUGH and action != "")


def check_complete(episodes: pl.DataFrame, task_ids: Sequence[str], runs: int, votes: int) -> None:
    """Every run holds every task exactly ``votes`` times, and nothing else.

    Raises:
        EvaluationError: otherwise; the message names the first such task and its count.
    """
    found = episodes.select(RUN_KEY).unique().sort(RUN_KEY)
    if len(found) != runs:
        names = ", ".join(f"run-{run}" for run in found["run"]) or "none"
        raise EvaluationError(f"{runs} runs were asked for, but the rollouts hold {len(found)}: {names}")
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
