"""TextWorld-Cooking's rows of the paper's tables."""

from __future__ import annotations

import polars as pl

from skillpress.environments.textworld_cooking.behavior import (
    COOKING_THOUGHT,
    cook_emission,
    cooking_table,
    failure_length,
    is_cook_action,
)
from skillpress.evaluation.behavior import BehaviorFigure, failure_share, share, success_length
from skillpress.evaluation.episodes import EPISODE_KEY
from skillpress.evaluation.main_table import table_1
from skillpress.evaluation.paper import Panel
from skillpress.evaluation.play import Play


def table_2(play: Play) -> tuple[BehaviorFigure, ...]:
    """Length of successes, and failures that burned food."""
    return success_length(play.episodes), failure_share(play.episodes, "burned")


def table_5(play: Play) -> tuple[BehaviorFigure, ...]:
    """How often steps of trap games think of cooking and then cook; how many episodes ever cook."""
    trapped = thought_table(play.where(lambda task: bool(task.spec["trap"])).steps)
    thinking, both = pl.col("thinking"), pl.col("thinking_and_cooking")
    tasks = list(play.tasks.values())
    return (
        share("thought_cook", "Thought mentions cook", trapped, thinking, pl.col("length"), "Table 5"),
        share("cook_given_thought", "Action cook | thought", trapped, both, thinking, "Table 5"),
        cook_emission(play.steps, tasks, says_cook=True),
        cook_emission(play.steps, tasks, says_cook=False),
    )


def table_8(play: Play) -> tuple[BehaviorFigure, ...]:
    """Lengths, and how failures ended."""
    return (
        success_length(play.episodes),
        failure_length(cooking_table(play.steps)),
        *(failure_share(play.episodes, end) for end in ("burned", "wrong_processing", "timeout")),
    )


def thought_table(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per episode: key, ``length``, steps ``thinking`` of cooking, and those of them that cook."""
    thinks = pl.col("thought").str.contains(f"(?i){COOKING_THOUGHT.pattern}")
    cooks = pl.col("action").map_elements(is_cook_action, pl.Boolean)
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        length=pl.len(), thinking=thinks.sum(), thinking_and_cooking=(thinks & cooks).sum()
    )


TABLES = (
    Panel(1, "TextWorld-Cooking", table_1),
    Panel(2, "TextWorld-Cooking (all episodes)", table_2),
    Panel(5, "TextWorld-Cooking", table_5),
    Panel(8, "TextWorld-Cooking", table_8),
)
