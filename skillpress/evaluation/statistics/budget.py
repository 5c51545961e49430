"""Success against step budget: the success rate if episodes had been cut after t steps.

Success at the full budget T alone flatters a policy that wanders: on Countdown a random explorer wins more
than half of the tasks within 30 steps. An episode counts as solved at budget t if it was won in at most t
steps. The area under that curve, divided by T, is 1 if every task is solved in one step and 0 if none is ever
solved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

BUDGET_POINTS = (3, 5, 10, 30)
"""Budgets (steps) that tables report, up to T."""


@dataclass(frozen=True)
class BudgetCurve:
    """The share of episodes won within each budget."""

    success: tuple[float, ...]
    """``success[t - 1]`` is the share won within t steps, t = 1..T."""
    area: float
    """Mean of ``success``, in [0, 1]."""
    points: dict[int, float]
    """Budget to success, for :data:`BUDGET_POINTS` up to T."""
    episodes: int


def success_against_budget(episodes: pl.DataFrame, max_steps: int) -> BudgetCurve:
    """The curve for budgets 1..T = ``max_steps``. ``episodes``: rows of ``episode_table``.

    Raises:
        ValueError: an episode is longer than T.
    """
    longest = max(episodes["length"].to_list())
    if longest > max_steps:
        raise ValueError(f"an episode has {longest} steps, more than T = {max_steps}")
    budgets = pl.DataFrame({"length": range(1, max_steps + 1)})
    wins = episodes.filter("won").group_by("length").len("wins")
    cumulative = budgets.join(wins, on="length", how="left").sort("length")["wins"].fill_null(0).cum_sum()
    success = tuple((cumulative / episodes.height).to_list())
    points = {budget: success[budget - 1] for budget in BUDGET_POINTS if budget <= max_steps}
    return BudgetCurve(success, sum(success) / max_steps, points, episodes.height)


def budget_rows(curves: Mapping[str, BudgetCurve]) -> Iterator[dict[str, float]]:
    """One row per step budget, one column per policy: the share won within so many steps."""
    for step, shares in enumerate(zip(*(curve.success for curve in curves.values()), strict=True), 1):
        yield {"steps": float(step), **dict(zip(curves, shares, strict=True))}
