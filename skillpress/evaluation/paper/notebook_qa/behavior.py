"""How a policy answers questions: whether it answers at all, and how much it looks up before."""

from __future__ import annotations

import polars as pl

from skillpress.environments.notebook_qa.environment import WRONG_ANSWER
from skillpress.environments.notebook_qa.skills import NotebookProjection
from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.statistics.behavior import average, share
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps

NO_SKILL = "None"
_PROJECTION = NotebookProjection()


def notebook_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """Every figure of this module."""
    episodes = steps.per_episode(_episodes)
    won = episodes.filter("won")
    answered = pl.col("answered").cast(pl.Int64)
    return EnvironmentBehavior(
        (
            share("answered", "Episodes with an answer", episodes, answered),
            average("searches", "Searches", won, pl.col("searches"), "per success"),
            average("reads", "Pages read", won, pl.col("reads"), "per success"),
        ),
        action_mix(steps),
    )


def action_mix(steps: EvaluationSteps) -> dict[str, int]:
    """Steps of won episodes by their skill."""
    counts = steps.filter(pl.col("won")).counts(_skill())
    return {name: counts[name] for name in (*_PROJECTION.alphabet, NO_SKILL)}


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    skill = _skill()
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        pl.col("won").first(),
        answered=pl.col("outcome").first().is_in(["won", WRONG_ANSWER]),
        searches=(skill == "Search").sum().cast(pl.Int64),
        reads=(skill == "Read").sum().cast(pl.Int64),
    )


def _skill() -> pl.Expr:
    return pl.col("action").map_elements(lambda code: _PROJECTION.skill(code) or NO_SKILL, pl.String)
