"""The outcomes of a run, task by task: ``pass_at_1``, ``sc_at_k`` and the plan's other names.

Each outcome is a number per test task whose mean over tasks is the run's figure, so contrasts can be paired
by task. An episode is given by the step at which it was won, or 0 if it was not.
"""

from __future__ import annotations

import polars as pl

from skillpress.evaluation.statistics.strata import within
from skillpress.evaluation.study.plan import within_budget


def scores(won_at: pl.DataFrame, outcome: str, max_steps: int, votes: int) -> pl.DataFrame:
    """``task_id`` and ``score``.

    Args:
        won_at: ``task_id`` and ``won_at``, the list of the task's episodes, run by run and vote by vote.
    """
    steps = pl.col("won_at").cast(pl.Int64)
    episodes = won_at.select("task_id", "won_at").with_row_index("row").explode("won_at")
    number = pl.int_range(pl.len()).over("row")
    if outcome == "sc_at_k":
        verdicts = episodes.group_by("row", number // votes, maintain_order=True).agg(
            pl.col("task_id").first(), score=((pl.col("won_at") > 0).sum() * 2 > votes)
        )
    else:
        value = {
            "pass_at_1": steps > 0,
            "budget_area": pl.when(steps > 0).then((max_steps - steps + 1) / max_steps).otherwise(0.0),
        }
        budget = within_budget(outcome)
        chosen = value[outcome] if budget is None else (steps > 0) & (steps <= budget)
        verdicts = episodes.select("task_id", score=chosen)
    means = verdicts.group_by("task_id", maintain_order=True).agg(pl.col("score").cast(pl.Float64).mean())
    return means.with_columns(pl.col("score").round(12))  # equal shares must tie exactly


def measured(facts: pl.DataFrame) -> pl.DataFrame:
    """``task_id`` and ``score``: the mean of a fact over the episodes that were won. A task without such an
    episode has no row, so the outcome says how tasks are won and not how many.

    Args:
        facts: ``task_id`` and ``values``, a value of each of the task's won episodes.
    """
    means = facts.select("task_id", score=pl.col("values").list.mean().cast(pl.Float64))
    return means.drop_nulls().with_columns(pl.col("score").round(12))


def of_class(outcomes: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows whose ``kind`` is the class or lies in it; all rows if no class is named."""
    if not name:
        return outcomes
    kinds = [kind for kind in outcomes["kind"].unique() if within(kind, name)]
    return outcomes.filter(pl.col("kind").is_in(kinds))
