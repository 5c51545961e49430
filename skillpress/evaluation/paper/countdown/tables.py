"""Countdown-Stepwise's rows of the paper's tables.

Table 9 separates failures by their length, as the paper's labels do: whether an episode took all T steps. An
episode that gets stuck at step T did, although its outcome is ``stuck``. So these two rows have labels of
their own, beside the shares of outcomes that ``evaluation/behavior.py`` counts.
"""

from __future__ import annotations

import polars as pl

from skillpress.evaluation.paper.countdown.behavior import (
    closing_operations,
    episode_actions,
    multiply_divide_share,
    resets_per_success,
    unique_operations,
    zero_reset_share,
)
from skillpress.evaluation.paper.layout import PaperPanel
from skillpress.evaluation.paper.main_table import table_1
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.behavior import (
    BehaviorFigure,
    invalid_rate_of_successes,
    repetition_rate,
    share,
    success_length,
)


def table_2(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Solving without detours, and the operations that few policies use."""
    episodes = episode_actions(played.steps)
    return zero_reset_share(episodes), multiply_divide_share(episodes)


def table_4(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """The operation that closed each success."""
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
        *failures_by_length(played),
    )


def failures_by_length(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Shares of the failures that took all T steps and of those that got stuck before; they add up to 1.

    The keys are the paper's keys for its figures.
    """
    failed = played.episodes.filter(~pl.col("won"))
    stuck_before = (pl.col("outcome") == "stuck") & (pl.col("length") < played.max_steps)
    timeout, stuck = "Took all T steps, of failures", "Stuck before step T, of failures"
    return (
        share("failures_timeout", timeout, failed, ~stuck_before, table="Table 9"),
        share("failures_stuck", stuck, failed, stuck_before, table="Table 9"),
    )


PANELS = (
    PaperPanel(1, "Countdown-Stepwise", table_1),
    PaperPanel(2, "Countdown-Stepwise (all episodes)", table_2),
    PaperPanel(4, "Countdown-Stepwise (successes)", table_4),
    PaperPanel(9, "Countdown-Stepwise", table_9),
)
