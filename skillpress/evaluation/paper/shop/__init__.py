"""The shop: WebShop's score and its success rate. ReuseRL's and L0's tables have no rows for it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from skillpress.environments.shop.environment import SCORE
from skillpress.evaluation.paper.figures import EnvironmentBehavior, EnvironmentFigures
from skillpress.evaluation.statistics.behavior import average
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps

WHOLE = 10_000
"""Scores are counted in such parts, since figures are sums of whole numbers."""


def shop_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """The mean score of all episodes; one without a purchase has 0."""
    found = average("score", "Score", steps.per_episode(_episodes), pl.col("score"), "share")
    scaled = (None if each is None else each / WHOLE for each in (found.value, found.low, found.high))
    value, low, high = scaled
    return EnvironmentBehavior((replace(found, value=value, low=low, high=high),))


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    said = pl.col("observation").last().str.extract(rf"{SCORE} \[SEP\] ([\d.]+)$")
    score = (said.cast(pl.Float64).fill_null(0.0) * WHOLE).round().cast(pl.Int64)
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(score=score)


FIGURES = EnvironmentFigures(behavior=shop_behavior)
"""The entry that ``skillpress.evaluation.paper`` looks up."""
