"""How a policy plays Countdown: resets, and which operations it uses (Tables 2, 4 and 9).

Only actions that were carried out count: an invalid operation changed nothing. Operations are
looked at in won episodes, as in the paper; ``zero_reset_success`` alone is a share of all
episodes, since a share of successes rises when hard tasks are simply given up.
"""

from __future__ import annotations

import polars as pl

from skillpress.evaluation.behavior import BehaviorFigure, EnvironmentBehavior, mean, ratio
from skillpress.evaluation.episodes import EPISODE_KEY

OPERATIONS = {"+": "Add", "-": "Subtract", "*": "Multiply", "/": "Divide"}
"""Operator to its name in tables and figures."""


def countdown_behavior(steps: pl.DataFrame) -> EnvironmentBehavior:
    """Every figure of this module. ``steps``: rows of ``evaluation_steps``."""
    episodes = play_table(steps)
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


def play_table(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per episode: key, ``won``, ``resets``, ``operations`` (operators in order)."""
    carried_out = pl.col("invalid").is_null()
    operator = pl.col("action").filter(carried_out).str.extract(r"^op\(([-+*/]),")
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        pl.col("won").first(),
        resets=(carried_out & (pl.col("action") == "reset")).sum().cast(pl.Int64),
        operations=operator.drop_nulls(),
    )


def resets_per_success(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of resets in won episodes (Table 9)."""
    won = episodes.filter("won")
    value = mean(won["resets"])
    return BehaviorFigure("resets_per_success", "Resets", value, "per success", won.height, "Table 9")


def zero_reset_share(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of won episodes without a reset (Tables 2 and 9)."""
    won = episodes.filter("won")
    value = ratio(int((won["resets"] == 0).sum()), won.height)
    return BehaviorFigure(
        "zero_reset_share", "Zero-reset, of successes", value, "share", won.height, "Tables 2, 9"
    )


def zero_reset_success(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of all episodes that were won without a reset."""
    value = ratio(episodes.filter(pl.col("won") & (pl.col("resets") == 0)).height, episodes.height)
    return BehaviorFigure("zero_reset_success", "Zero-reset success", value, "share", episodes.height, "")


def multiply_divide_share(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of multiplications and divisions among the operations of won episodes (Tables 2, 9)."""
    won = episodes.filter("won")
    operations = won["operations"].explode().drop_nulls()
    value = ratio(int(operations.is_in(["*", "/"]).sum()), len(operations))
    return BehaviorFigure(
        "multiply_divide_share", "Mul/Div, of operations", value, "share", won.height, "Tables 2, 9"
    )


def unique_operations(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of different operators in a won episode (Table 9)."""
    won = episodes.filter("won")
    value = mean(won["operations"].list.n_unique())
    return BehaviorFigure(
        "unique_operations", "Different operators", value, "per success", won.height, "Table 9"
    )


def closing_operations(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """How often each operator made the winning move (Table 4)."""
    won = episodes.filter("won")
    last = won["operations"].list.last()
    return tuple(
        BehaviorFigure(
            f"closing_{name.lower()}", f"Closed by {symbol}",
            float((last == symbol).sum()), "count", won.height, "Table 4",
        )
        for symbol, name in OPERATIONS.items()
    )  # fmt: skip


def action_mix(steps: pl.DataFrame) -> dict[str, int]:
    """Steps of won episodes by kind: the four operations, rollback, reset, and invalid ones."""
    operator = pl.col("action").str.extract(r"^op\(([-+*/]),").replace_strict(OPERATIONS, default=None)
    kind = (
        pl.when(pl.col("invalid").is_not_null())
        .then(pl.lit("Invalid"))
        .otherwise(pl.coalesce(operator, pl.col("action").str.to_titlecase()))
    )
    counts = dict(steps.filter("won").group_by(kind.alias("kind")).len("count").iter_rows())
    return {name: counts.get(name, 0) for name in (*OPERATIONS.values(), "Rollback", "Reset", "Invalid")}
