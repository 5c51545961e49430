"""How a policy acts, apart from whether it succeeds: the figures that make sense in any world.

The paper's Tables 2 and 9 describe successful episodes. A rate of steps is pooled: steps that
qualify, divided by all steps of the episodes looked at. Figures that need to read the actions
(resets, operations) belong to an environment and stand in its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl


@dataclass(frozen=True)
class BehaviorFigure:
    """One number of a behaviour table."""

    key: str
    """Name in JSON and in MLflow."""
    label: str
    """Name in the report."""
    value: float | None
    """None when no episode qualifies."""
    unit: Literal["share", "steps", "per success", "count"]
    episodes: int
    """Episodes that the figure was computed on."""
    table: str
    """Where the paper reports it; empty where it does not."""


@dataclass(frozen=True)
class EnvironmentBehavior:
    """What an environment's own behaviour function returns."""

    figures: tuple[BehaviorFigure, ...]
    action_mix: Mapping[str, int]
    """Kind of action (in the environment's words) to steps of successful episodes."""


def success_length(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of steps of won episodes (Tables 2 and 9)."""
    won = episodes.filter("won")
    return BehaviorFigure(
        "success_length", "Success length", mean(won["length"]), "steps", won.height, "Tables 2, 9"
    )


def invalid_rate_of_successes(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of the steps of won episodes that changed nothing (Tables 2 and 9)."""
    won = episodes.filter("won")
    rate = ratio(int(won["invalid_steps"].sum()), int(won["length"].sum()))
    return BehaviorFigure(
        "invalid_rate_success", "Invalid actions, successes", rate, "share", won.height, "Tables 2, 9"
    )


def invalid_rate(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of the steps of all episodes that changed nothing."""
    rate = ratio(int(episodes["invalid_steps"].sum()), int(episodes["length"].sum()))
    return BehaviorFigure("invalid_rate", "Invalid actions, all episodes", rate, "share", episodes.height, "")


def repetition_rate(episodes: pl.DataFrame) -> BehaviorFigure:
    """Share of the steps of won episodes whose action was already taken in them (Tables 2 and 9)."""
    won = episodes.filter("won")
    rate = ratio(int(won["repeated_steps"].sum()), int(won["length"].sum()))
    return BehaviorFigure(
        "repetition_rate_success", "Repeated actions, successes", rate, "share", won.height, "Tables 2, 9"
    )


def failure_shares(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """How failures ended, each outcome's share of them (Tables 2 and 9); the shares add up to 1."""
    lost = episodes.filter(~pl.col("won"))
    counts = lost.group_by("outcome").len("count").sort("outcome")
    return tuple(
        BehaviorFigure(
            f"failures_{outcome}", f"{outcome.capitalize()}, of failures",
            count / lost.height, "share", lost.height, "Tables 2, 9",
        )
        for outcome, count in counts.iter_rows()
    )  # fmt: skip


def general_behavior(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """Every figure of this module, in the order of Table 9."""
    return (
        success_length(episodes),
        invalid_rate_of_successes(episodes),
        invalid_rate(episodes),
        repetition_rate(episodes),
        *failure_shares(episodes),
    )


def success_lengths(episodes: pl.DataFrame) -> dict[int, int]:
    """Number of steps to number of won episodes that took so many."""
    return dict(episodes.filter("won").group_by("length").len("count").sort("length").iter_rows())


def mean(values: pl.Series) -> float | None:
    """The mean of whole numbers, or None of nothing."""
    return ratio(int(values.sum()), len(values))


def ratio(part: float, whole: float) -> float | None:
    """``part / whole``, or None when there is no whole."""
    return part / whole if whole else None
