"""How a policy cooks: how it fails, and when it cooks food that was cooked already.

Tables 2 and 8 look at failed episodes. How they ended (``burned``, ``wrong_processing``, ``timeout``) is
their outcome, which is counted for every environment alike. Table 5 depends on the games in which the
cookbook's wording is a trap. Tasks tell this: :func:`trap_table`, to be joined by ``task_id``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.skills import PROJECTION
from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.statistics.behavior import BehaviorFigure, average, share
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps, carried_out

COOKING_THOUGHT = re.compile(r"cook|roast|fry|grill|stove|oven", re.IGNORECASE)
"""Table 5's "thought mentions cook"; ``cookbook`` counts, as in the paper's pattern."""


def is_cook_action(action: str) -> bool:
    """Table 5: whether an action cooks something."""
    return PROJECTION.skill(action) == "Cook"


def trap_table(tasks: Iterable[Task]) -> pl.DataFrame:
    """One row per task: ``task_id``, ``cook_off`` (food arrives as the recipe wants it cooked) and
    ``says_cook`` (the cookbook still asks for cooking). If both are true, the game is the paper's trap."""
    rows = [
        (
            task.task_id,
            not task.spec["settings"]["cook"],
            any(cooked != "raw" for _, cooked, _ in task.spec["ingredients"]),
        )
        for task in tasks
    ]
    schema = {"task_id": pl.String, "cook_off": pl.Boolean, "says_cook": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def cook_emission(steps: EvaluationSteps, tasks: Iterable[Task], says_cook: bool) -> BehaviorFigure:
    """Share of episodes that cook, over games without cooking, by the cookbook (Table 5's last columns)."""
    wanted = trap_table(tasks).filter(pl.col("cook_off") & (pl.col("says_cook") == says_cook))
    episodes = cooking_table(steps).join(wanted, on="task_id", how="semi")
    name, label = ("trap", "cookbook says cook") if says_cook else ("silent", "cookbook silent")
    cooks, label = pl.col("cook_actions") > 0, f"Episodes that cook, {label}"
    return share(f"cook_emission_{name}", label, episodes, cooks, table="Table 5")


def cooking_table(steps: EvaluationSteps) -> pl.DataFrame:
    """One row per episode: key, ``won``, ``outcome``, ``length``, ``cook_actions``, ``read_recipe``."""
    return steps.per_episode(_cooking)


def _cooking(steps: pl.DataFrame) -> pl.DataFrame:
    skill = pl.col("action").map_elements(PROJECTION.skill, pl.String, skip_nulls=True)
    return (
        steps.with_columns(skill=skill)
        .group_by(EPISODE_KEY, maintain_order=True)
        .agg(
            pl.col("won").first(),
            pl.col("outcome").first(),
            pl.len().cast(pl.Int64).alias("length"),
            (pl.col("skill") == "Cook").sum().cast(pl.Int64).alias("cook_actions"),
            (pl.col("skill") == "Read_Recipe").any().alias("read_recipe"),
        )
    )


def failure_length(episodes: pl.DataFrame) -> BehaviorFigure:
    """Mean number of steps of failed episodes (Table 8)."""
    failed = episodes.filter(~pl.col("won"))
    return average("failure_length", "Failure length", failed, pl.col("length"), "steps", table="Table 8")


def cooking_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """The figures that do not need the tasks."""
    episodes = cooking_table(steps)
    figures = (
        failure_length(episodes),
        share("read_recipe", "Read the cookbook", episodes, pl.col("read_recipe")),
        average(
            "cook_actions", "Cook actions", episodes.filter("won"), pl.col("cook_actions"), "per success"
        ),
    )
    return EnvironmentBehavior(figures, action_mix(steps))


def action_mix(steps: EvaluationSteps) -> dict[str, int]:
    """Steps of won episodes by skill, then the steps that changed nothing."""
    skill = pl.col("action").map_elements(PROJECTION.skill, pl.String, skip_nulls=True)
    kind = pl.when(~carried_out()).then(pl.lit("Invalid")).otherwise(skill)
    counts = steps.filter(pl.col("won")).counts(kind)
    return {name: counts[name] for name in (*PROJECTION.alphabet, "Invalid")}
