"""Countdown-Stepwise's rows of the paper's tables."""

from __future__ import annotations

import polars as pl

from skillpress.evaluation.behavior import (
    BehaviorFigure,
    failure_share,
    invalid_rate_of_successes,
    repetition_rate,
    success_length,
)
from skillpress.paper.countdown.behavior import (
    closing_operations,
    episode_actions,
    multiply_divide_share,
    resets_per_success,
    unique_operations,
    zero_reset_share,
)
from skillpress.paper.layout import Panel
from skillpress.paper.main_table import table_1
from skillpress.paper.method_episodes import TIMEOUT, MethodEpisodes


def table_2(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Straight solving, and the operations that few use."""
    episodes = episode_actions(played.steps)
    return zero_reset_share(episodes), multiply_divide_share(episodes)


def table_4(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Which operation closed each success."""
    return closing_operations(episode_actions(played.steps))


def table_9(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """How successes go, and how failures end."""
    episodes = episode_actions(played.steps)
    return (
        success_length(played.episodes),
        resets_per_success(episodes),
        zero_reset_share(episodes),
        invalid_rate_of_successes(played.episodes),
        repetition_rate(played.episodes),
        multiply_divide_share(episodes),
        unique_operations(episodes),
        *(failure_share(by_length(played), end) for end in ("timeout", "stuck")),
    )


def by_length(played: MethodEpisodes) -> pl.DataFrame:
    """The episodes with their outcomes as Table 9 has them: an episode that took all T steps timed out,
    also one that got stuck at the last of them."""
    at_the_end = (pl.col("outcome") == "stuck") & (pl.col("length") == played.max_steps)
    return played.episodes.with_columns(
        outcome=pl.when(at_the_end).then(pl.lit(TIMEOUT)).otherwise(pl.col("outcome"))
    )


PANELS = (
    Panel(1, "Countdown-Stepwise", table_1),
    Panel(2, "Countdown-Stepwise (all episodes)", table_2),
    Panel(4, "Countdown-Stepwise (successes)", table_4),
    Panel(9, "Countdown-Stepwise", table_9),
)
