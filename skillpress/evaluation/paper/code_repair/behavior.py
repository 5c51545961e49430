"""How a policy repairs programs: whether it submits a solution, and how much it edits and tests before."""

from __future__ import annotations

import polars as pl

from skillpress.environments.code_repair.skills import called
from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.statistics.behavior import average, share
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps

KINDS = {
    "edit list": "Inspect",
    "edit view": "Inspect",
    "edit change": "Edit",
    "edit str_replace": "Edit",
    "edit insert": "Edit",
    "test": "Test",
    "submit": "Submit",
}
"""The names of calls in the action mix; commands are ``Command``, steps without a call are ``Other``."""


def repair_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """Every figure of this module."""
    episodes = steps.per_episode(_episodes)
    won = episodes.filter("won")
    submitted = pl.col("submitted").cast(pl.Int64)
    return EnvironmentBehavior(
        (
            share("submitted", "Episodes with a submission", episodes, submitted),
            average("edits", "Edits", won, pl.col("edits"), "per success"),
            average("tests", "Runs of the tests", won, pl.col("tests"), "per success"),
        ),
        action_mix(steps),
    )


def action_mix(steps: EvaluationSteps) -> dict[str, int]:
    """Steps of won episodes by their kind."""
    counts = steps.filter(pl.col("won")).counts(_kind())
    return {name: counts[name] for name in (*dict.fromkeys(KINDS.values()), "Command", "Other")}


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    kind = _kind()
    return steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        pl.col("won").first(),
        submitted=(kind == "Submit").any(),
        edits=(kind == "Edit").sum().cast(pl.Int64),
        tests=(kind == "Test").sum().cast(pl.Int64),
    )


def _kind() -> pl.Expr:
    return pl.col("action").map_elements(_kind_of, pl.String)


def _kind_of(action: str) -> str:
    call = called(action)
    return "Command" if call.startswith("bash ") else KINDS.get(call, "Other")
