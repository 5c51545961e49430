"""How hard a question is: by the number of facts it joins, and by how often a policy has answered it.

The second is L0's notion of difficulty (sections 4.3 and 4.5: easy and hard sets of questions). L0 does not
state its thresholds; these are ours. A group of rollouts that are all won or all lost has no advantage to
learn from, so both extremes have their own class.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from skillpress.core.errors import TaskError
from skillpress.environments.notebook_qa.parameters import Difficulty

DIFFICULTIES: Final = ("unsolved", "hard", "medium", "easy", "mastered")
"""Pass rate 0, below 1/4, up to 3/4, above, and 1."""

HOPS_OF_DATASET: Final = {"bamboogle": 2, "nq_open": 1, "triviaqa": 1, "simpleqa": 1}
"""Number of hops in data sets whose questions do not state it, derived from how the questions were
written."""

WIN_COLUMNS: Final = ("task_id", "wins", "rollouts")


def is_of(chosen: Difficulty) -> pl.Expr:
    """Whether a set contains a question, by its ``hops``: an easy question needs one fact, a hard one joins
    several. A question whose hops are unknown is in neither set. L0 has two such sets (section 4.5); neither
    the paper nor the released code says how they were made."""
    if chosen == "all":
        return pl.lit(True)
    return (pl.col("hops") == 1 if chosen == "easy" else pl.col("hops") > 1).fill_null(False)


def hops() -> pl.Expr:
    """Number of facts to join, from columns ``dataset``, ``kind`` and ``supporting_titles``; null if it is
    unknown.

    MuSiQue's kind states it (``3hop1``); elsewhere every gold title is a fact; otherwise
    :data:`HOPS_OF_DATASET`.
    """
    titles = pl.col("supporting_titles").list.len()
    return pl.coalesce(
        pl.col("kind").str.extract(r"^(\d)hop").cast(pl.Int64),
        pl.when(titles > 0).then(titles.cast(pl.Int64)),
        pl.col("dataset").replace_strict(HOPS_OF_DATASET, default=None, return_dtype=pl.Int64),
    ).alias("hops")


def difficulty(wins: pl.DataFrame) -> pl.DataFrame:
    """The rows with ``pass_rate`` (wins / rollouts) and ``difficulty`` (one of :data:`DIFFICULTIES`).

    Args:
        wins: one row per task with ``task_id`` and the integers ``rollouts`` (k, of one policy with one
            sampling) and ``wins``, the number of them that were won.

    Raises:
        TaskError: a column is missing, a task is repeated or was not played, or wins are not in 0 ... k.
    """
    _check(wins)
    won, played = pl.col("wins").cast(pl.Int64), pl.col("rollouts").cast(pl.Int64)
    classed = (
        pl.when(won == 0).then(pl.lit("unsolved"))
        .when(won == played).then(pl.lit("mastered"))
        .when(4 * won < played).then(pl.lit("hard"))
        .when(4 * won > 3 * played).then(pl.lit("easy"))
        .otherwise(pl.lit("medium"))
    )  # fmt: skip
    return wins.with_columns(pass_rate=won / played, difficulty=classed.cast(pl.Enum(DIFFICULTIES)))


def _check(wins: pl.DataFrame) -> None:
    for name in WIN_COLUMNS:
        if name not in wins.columns:
            raise TaskError(f"pass rates: column {name} is missing; there must be {', '.join(WIN_COLUMNS)}")
    twice = wins.filter(pl.col("task_id").is_duplicated())
    if not twice.is_empty():
        raise TaskError(
            f"pass rates: task {twice['task_id'][0]} occurs {twice.height} times; it must occur once"
        )
    possible = (pl.col("rollouts") >= 1) & pl.col("wins").is_between(0, pl.col("rollouts"))
    wrong = wins.filter(~possible.fill_null(False))
    if not wrong.is_empty():
        task, won, played = wrong.select(WIN_COLUMNS).row(0)
        raise TaskError(f"pass rates: task {task} has {won} wins of {played} rollouts")
