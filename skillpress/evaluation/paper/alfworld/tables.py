"""ALFWorld's rows of the paper's tables.

Table 7 labels a failed out-of-distribution episode by what it lacked, within two task types and over all. An
episode that fits no label counts only among the failures.
"""

from __future__ import annotations

from functools import partial

import polars as pl

from skillpress.evaluation.paper.alfworld.behavior import failure_mode, redundant_visits
from skillpress.evaluation.paper.layout import PaperPanel
from skillpress.evaluation.paper.main_table import table_1
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.behavior import (
    BehaviorFigure,
    count,
    invalid_rate_of_successes,
    repetition_rate,
    success_length,
)
from skillpress.evaluation.statistics.episodes import EPISODE_KEY
from skillpress.evaluation.statistics.strata import within

MODES = {
    "clean": ("never_picked_target", "picked_no_transform"),
    "two": ("never_picked_target", "two_partial_deliver"),
    "all": ("never_picked_target",),
}
"""The failure modes that the paper counts in each part of Table 7."""


def table_2(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """Length, invalid and repeated actions of in-distribution successes."""
    episodes = played.where(lambda task: within(task.stratum, "iid")).episodes
    return success_length(episodes), invalid_rate_of_successes(episodes), repetition_rate(episodes)


def table_6(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """The same, and walks to a place where the agent had been before."""
    return *table_2(played), redundant_visits(played.where(lambda task: within(task.stratum, "iid")).steps)


def table_7(played: MethodEpisodes, stratum: str, part: str) -> tuple[BehaviorFigure, ...]:
    """Failed episodes of a class of tasks, and their number by what they lacked."""
    episodes = with_failure_modes(played.where(lambda task: within(task.stratum, stratum)))
    return (
        count(f"{part}_fails", "total fails", episodes, ~pl.col("won"), "Table 7"),
        *(count(f"{part}_{mode}", mode, episodes, pl.col("mode") == mode, "Table 7") for mode in MODES[part]),
    )


def with_failure_modes(played: MethodEpisodes) -> pl.DataFrame:
    """Rows of ``episode_table`` with ``mode``: the failure mode, empty for a success."""

    def modes_of(steps: pl.DataFrame) -> pl.DataFrame:
        failed = steps.group_by(EPISODE_KEY, maintain_order=True).agg("action", "observation")
        said = failed.select("task_id", "action", "observation").iter_rows()
        modes = [failure_mode(played.tasks[task], actions, answers) for task, actions, answers in said]
        return failed.select(EPISODE_KEY).with_columns(mode=pl.Series(modes, dtype=pl.String))

    modes = played.steps.filter(~pl.col("won")).per_episode(modes_of)
    return played.episodes.join(modes, on=EPISODE_KEY, how="left").with_columns(pl.col("mode").fill_null(""))


PANELS = (
    PaperPanel(1, "ALFWorld", table_1),
    PaperPanel(2, "ALFWorld (IID successes)", table_2),
    PaperPanel(6, "ALFWorld IID (successes)", table_6),
    PaperPanel(
        7,
        "Clean+Place, out of distribution",
        partial(table_7, stratum="ood/pick_clean_then_place_in_recep", part="clean"),
    ),
    PaperPanel(
        7,
        "Two-Obj+Place, out of distribution",
        partial(table_7, stratum="ood/pick_two_obj_and_place", part="two"),
    ),
    PaperPanel(7, "All OOD tasks", partial(table_7, stratum="ood", part="all")),
)

NAMED_SKILLS = {
    ("Transport", "Transform"): (
        "Approach a tool/appliance with the carried item and apply it (e.g. clean, heat, cool)"
    ),
    ("Explore", "Explore", "Explore", "Explore"): (
        "Systematic-search routine over candidate receptacles when the target location is unknown"
    ),
    ("Transport", "Deliver"): (
        "Carry-and-place: move to the destination receptacle and place the held object"
    ),
    ("Explore", "Take", "Transport", "Deliver"): "Canonical pick-and-place skeleton for simple Place tasks",
    ("Take", "Transport", "Transform", "Deliver"): (
        "Clean/heat/cool-then-place: process the object at the appliance before delivery"
    ),
}
"""Table 11: learned phrases, each with the skill of SkillRL's library that the paper found closest."""
