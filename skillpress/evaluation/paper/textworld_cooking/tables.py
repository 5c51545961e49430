"""TextWorld-Cooking's rows of the paper's tables."""

from __future__ import annotations

import polars as pl

from skillpress.evaluation.paper.layout import PaperPanel
from skillpress.evaluation.paper.main_table import metric, success, table_1
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.paper.textworld_cooking.behavior import (
    COOKING_THOUGHT,
    cook_emission,
    cooking_table,
    failure_length,
    is_cook_action,
)
from skillpress.evaluation.statistics.behavior import BehaviorFigure, failure_share, share, success_length
from skillpress.evaluation.statistics.episodes import EPISODE_KEY


def table_1_with_settings(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Success on all games, then on the games of each setting (the paper's section 6.2)."""
    return (
        *table_1(played),
        *(
            success(
                setting,
                f"{setting} games ({metric(played)})",
                played.where(lambda task, setting=setting: task.stratum == setting),  # type: ignore[misc]
            )
            for setting in ("simple", "hard")
            if any(task.stratum == setting for task in played.tasks.values())
        ),
    )


def table_2(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Length of successes, and failures that burned food."""
    return success_length(played.episodes), failure_share(played.episodes, "burned")


def table_5(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """How often steps of trap games think of cooking and then cook, and how many episodes ever cook."""
    trapped = played.where(lambda task: bool(task.spec["trap"])).steps.per_episode(_thoughts)
    thinking, both = pl.col("thinking"), pl.col("thinking_and_cooking")
    tasks, length = list(played.tasks.values()), pl.col("length")
    return (
        share("thought_cook", "Thought mentions cook", trapped, thinking, length, table="Table 5"),
        share("cook_given_thought", "Action cook | thought", trapped, both, thinking, table="Table 5"),
        cook_emission(played.steps, tasks, says_cook=True),
        cook_emission(played.steps, tasks, says_cook=False),
    )


def table_8(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Lengths, and how failures ended."""
    return (
        success_length(played.episodes),
        failure_length(cooking_table(played.steps)),
        *(failure_share(played.episodes, end) for end in ("burned", "wrong_processing", "timeout")),
    )


def _thoughts(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per episode: key, ``length``, steps ``thinking`` of cooking, and how many of these cook."""
    thinks = pl.col("thought").str.contains(f"(?i){COOKING_THOUGHT.pattern}")
    cooks = pl.col("action").map_elements(is_cook_action, pl.Boolean)
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        length=pl.len(), thinking=thinks.sum(), thinking_and_cooking=(thinks & cooks).sum()
    )


PANELS = (
    PaperPanel(1, "TextWorld-Cooking", table_1_with_settings),
    PaperPanel(2, "TextWorld-Cooking (all episodes)", table_2),
    PaperPanel(5, "TextWorld-Cooking", table_5),
    PaperPanel(8, "TextWorld-Cooking", table_8),
)
