"""Countdown-Stepwise's rows of the paper's tables."""

from __future__ import annotations

from skillpress.environments.countdown.behavior import (
    closing_operations,
    multiply_divide_share,
    play_table,
    resets_per_success,
    unique_operations,
    zero_reset_share,
)
from skillpress.evaluation.behavior import (
    BehaviorFigure,
    failure_share,
    invalid_rate_of_successes,
    repetition_rate,
    success_length,
)
from skillpress.evaluation.main_table import table_1
from skillpress.evaluation.paper import Panel
from skillpress.evaluation.play import Play


def table_2(play: Play) -> tuple[BehaviorFigure, ...]:
    """Straight solving, and the operations that few use."""
    episodes = play_table(play.steps)
    return zero_reset_share(episodes), multiply_divide_share(episodes)


def table_4(play: Play) -> tuple[BehaviorFigure, ...]:
    """Which operation closed each success."""
    return closing_operations(play_table(play.steps))


def table_9(play: Play) -> tuple[BehaviorFigure, ...]:
    """How successes go, and how failures end."""
    episodes = play_table(play.steps)
    return (
        success_length(play.episodes),
        resets_per_success(episodes),
        zero_reset_share(episodes),
        invalid_rate_of_successes(play.episodes),
        repetition_rate(play.episodes),
        multiply_divide_share(episodes),
        unique_operations(episodes),
        failure_share(play.episodes, "timeout"),
        failure_share(play.episodes, "stuck"),
    )


TABLES = (
    Panel(1, "Countdown-Stepwise", table_1),
    Panel(2, "Countdown-Stepwise (all episodes)", table_2),
    Panel(4, "Countdown-Stepwise (successes)", table_4),
    Panel(9, "Countdown-Stepwise", table_9),
)
