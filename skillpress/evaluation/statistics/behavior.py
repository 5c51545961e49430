"""How a policy acts, apart from its success: the figures that make sense in any environment.

The paper's Tables 2 and 9 describe successful episodes. A rate of steps is pooled: qualifying steps divided
by all steps of these episodes. Figures that have to read the actions (resets, operations) belong to an
environment and are in ``paper/<environment>``. They use the same three constructors: :func:`share`,
:func:`average` and :func:`count`.

A step can fail in two ways, which are counted separately: its action is not carried out (``refused``, the
paper's "invalid"), or it is carried out although the response has a bad format (``misformatted``).
``malformed`` counts every response in a bad format, whether its action was carried out or not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.intervals import clustered_mean, clustered_share

Unit = Literal["share", "steps", "per success", "count"]
EPISODES = pl.lit(1)
"""The number of episodes, as the denominator of a share of episodes."""


@dataclass(frozen=True)
class BehaviorFigure:
    """One number of a behaviour table."""

    key: str
    """The figure's name in JSON and in MLflow."""
    label: str
    """The figure's name in the report."""
    value: float | None
    """None if no episode qualifies."""
    unit: Unit
    episodes: int
    """Number of episodes that the figure was computed on."""
    table: str
    """The paper's table with such a figure, possibly for a part of the tasks; empty if the paper has none."""
    low: float | None = None
    """Lower end of the 95% interval over tasks; None if there is no interval."""
    high: float | None = None
    """Upper end of the interval."""
    std: float | None = None
    """Sample deviation over training seeds (over runs if there is one seed); only success rates have it."""


def share(
    key: str, label: str, episodes: pl.DataFrame, part: pl.Expr, whole: pl.Expr = EPISODES, table: str = ""
) -> BehaviorFigure:
    """The sum of ``part`` over the sum of ``whole``; both are whole numbers per episode."""
    parts, wholes = _per_task(episodes, part, whole)
    count = episodes.height
    none = BehaviorFigure(key=key, label=label, value=None, unit="share", episodes=count, table=table)
    if not wholes.sum():
        return none
    interval = clustered_share(parts, wholes)
    return replace(none, value=float(parts.sum() / wholes.sum()), low=interval.low, high=interval.high)


def average(
    key: str, label: str, episodes: pl.DataFrame, amount: pl.Expr, unit: Unit, table: str = ""
) -> BehaviorFigure:
    """The mean of ``amount``, a whole number per episode."""
    amounts, counts = _per_task(episodes, amount, EPISODES)
    none = BehaviorFigure(key=key, label=label, value=None, unit=unit, episodes=episodes.height, table=table)
    if not episodes.height:
        return none
    value, interval = float(amounts.sum() / counts.sum()), clustered_mean(amounts, counts)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return replace(none, value=value, low=low, high=high)


def count(
    key: str, label: str, episodes: pl.DataFrame, qualifies: pl.Expr, table: str = ""
) -> BehaviorFigure:
    """The number of episodes that qualify. The interval is that of their share, times the episodes."""
    part = replace(share(key, label, episodes, qualifies, table=table), unit="count")
    if part.value is None or part.low is None or part.high is None:
        return replace(part, value=None, episodes=0)
    value, low, high = (round(x * episodes.height, 9) for x in (part.value, part.low, part.high))
    return replace(part, value=value, low=low, high=high)


def success_length(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of steps of won episodes (Tables 2, 6, 8 and 9)."""
    won = episodes.filter("won")
    return average("success_length", "Success length", won, pl.col("length"), "steps", table="Tables 2, 9")


def invalid_rate_of_successes(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of the steps in won episodes whose action was not carried out (Tables 2, 6 and 9): ALFWorld
    answers "Nothing happens.", which the paper calls invalid."""
    return _of_won_steps("invalid_rate_success", "Refused actions, successes", episodes, "refused_steps")


def misformatted_rate_of_successes(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of the steps in won episodes that were carried out in spite of a bad format; the paper has no
    such figure."""
    won, part = episodes.filter("won"), pl.col("invalid_steps") - pl.col("refused_steps")
    label = "Carried out in a bad format, successes"
    return share("misformatted_rate_success", label, won, part, pl.col("length"))


def repetition_rate(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of the steps in won episodes that repeat an earlier action of the episode (Tables 2, 6, 9)."""
    return _of_won_steps("repetition_rate_success", "Repeated actions, successes", episodes, "repeated_steps")


def failure_share(episodes: pl.DataFrame, outcome: str) -> BehaviorFigure:
    """Share of the failures with this outcome (Tables 2, 8 and 9)."""
    label = f"{outcome.capitalize().replace('_', ' ')}, of failures"
    failed, ended = episodes.filter(~pl.col("won")), pl.col("outcome") == outcome
    return share(f"failures_{outcome}", label, failed, ended, table="Tables 2, 9")


def general_behavior(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """The figures of any environment, in the order of Table 9. The shares of failures, one for each outcome
    that occurred, add up to 1."""
    length, invalid, refused = pl.col("length"), pl.col("invalid_steps"), pl.col("refused_steps")
    malformed = pl.col("malformed_steps")
    outcomes = episodes.filter(~pl.col("won"))["outcome"].unique().sort()
    return (
        success_length(episodes),
        invalid_rate_of_successes(episodes),
        misformatted_rate_of_successes(episodes),
        share("invalid_rate", "Refused or in a bad format, all episodes", episodes, invalid, length),
        share("refused_rate", "Refused actions, all episodes", episodes, refused, length),
        share("malformed_rate", "Responses in a bad format, all episodes", episodes, malformed, length),
        repetition_rate(episodes),
        *(failure_share(episodes, outcome) for outcome in outcomes),
    )


def success_lengths(episodes: pl.DataFrame) -> dict[int, int]:
    """Number of steps to the number of won episodes of that length."""
    return dict(episodes.filter("won").group_by("length").len("count").sort("length").iter_rows())


def _of_won_steps(key: str, label: str, episodes: pl.DataFrame, steps: str) -> BehaviorFigure:
    part, whole = pl.col(steps), pl.col("length")
    return share(key, label, episodes.filter("won"), part, whole, table="Tables 2, 9")


def _per_task(
    episodes: pl.DataFrame, part: pl.Expr, whole: pl.Expr
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both amounts summed over each task's episodes."""
    amounts = episodes.select("task_id", part=part.cast(pl.Int64), whole=whole.cast(pl.Int64))
    sums = amounts.group_by("task_id", maintain_order=True).sum()
    return sums["part"].to_numpy(), sums["whole"].to_numpy()
