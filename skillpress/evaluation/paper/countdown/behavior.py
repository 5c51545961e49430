"""How a policy plays Countdown: resets, and which operations it uses (Tables 2, 4 and 9).

Only actions that were carried out count, because an invalid operation changed nothing. Operations are counted
in won episodes, as in the paper. ``zero_reset_success`` alone is a share of all episodes, since a share of
successes rises if a policy simply gives up hard tasks.
"""

from __future__ import annotations

import polars as pl

from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.statistics.behavior import BehaviorFigure, average, count, share
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps, carried_out

OPERATIONS = {"+": "Add", "-": "Subtract", "*": "Multiply", "/": "Divide"}
"""The name of each operator in tables and figures."""


def countdown_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """Every figure of this module."""
    episodes = episode_actions(steps)
    return EnvironmentBehavior(
        figures=(
            resets_per_success(episodes),
            zero_reset_share(episodes),
            zero_reset_success(episodes),
            multiply_divide_share(episodes),
            unique_operations(episodes),
            *closing_operations(episodes),
        ),
        action_mix=action_mix(steps),
    )


def episode_actions(steps: EvaluationSteps) -> pl.DataFrame:
    """One row per episode: key, ``won``, ``resets``, ``operations`` (operators in order)."""
    return steps.per_episode(_actions)


def _actions(steps: pl.DataFrame) -> pl.DataFrame:
    operator = pl.col("action").filter(carried_out()).str.extract(r"^op\(([-+*/]),")
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        pl.col("won").first(),
        resets=(carried_out() & (pl.col("action") == "reset")).sum().cast(pl.Int64),
        operations=operator.drop_nulls(),
    )


def resets_per_success(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of resets in won episodes (Table 9)."""
    won, resets = episodes.filter("won"), pl.col("resets")
    return average("resets_per_success", "Resets", won, resets, "per success", table="Table 9")


def zero_reset_share(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of won episodes without a reset (Tables 2 and 9)."""
    won, never = episodes.filter("won"), pl.col("resets") == 0
    return share("zero_reset_share", "Zero-reset, of successes", won, never, table="Tables 2, 9")


def zero_reset_success(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of all episodes that were won without a reset."""
    solved = pl.col("won") & (pl.col("resets") == 0)
    return share("zero_reset_success", "Zero-reset success", episodes, solved)


def multiply_divide_share(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of multiplications and divisions among the operations of won episodes (Tables 2, 9)."""
    won, operations = episodes.filter("won"), pl.col("operations").list
    part, label = operations.count_matches("*") + operations.count_matches("/"), "Mul/Div, of operations"
    return share("multiply_divide_share", label, won, part, operations.len(), table="Tables 2, 9")


def unique_operations(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of different operators in a won episode (Table 9)."""
    won, different = episodes.filter("won"), pl.col("operations").list.n_unique()
    return average("unique_operations", "Different operators", won, different, "per success", table="Table 9")


def closing_operations(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """How often each operator made the winning move (Table 4)."""
    won = episodes.filter("won")
    last = pl.col("operations").list.last()
    return tuple(
        count(f"closing_{name.lower()}", f"Closed by {symbol}", won, last == symbol, "Table 4")
        for symbol, name in OPERATIONS.items()
    )


def action_mix(steps: EvaluationSteps) -> dict[str, int]:
    """Steps of won episodes by kind: the four operations, rollback, reset, and invalid steps."""
    operator = pl.col("action").str.extract(r"^op\(([-+*/]),").replace_strict(OPERATIONS, default=None)
    kind = (
        pl.when(~carried_out())
        .then(pl.lit("Invalid"))
        .otherwise(pl.coalesce(operator, pl.col("action").str.to_titlecase()))
    )
    counts = steps.filter(pl.col("won")).counts(kind)
    return {name: counts[name] for name in (*OPERATIONS.values(), "Rollback", "Reset", "Invalid")}
