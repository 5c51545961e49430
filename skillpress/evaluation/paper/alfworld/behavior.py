"""How a policy plays ALFWorld: needless walks, and what was missing in failed episodes.

A failed episode always ran out of steps, so the paper labels it by what the agent had not done (Table 7): it
never took an object of the wanted kind, it brought one of two, or it took the object and never cleaned,
heated or cooled one as asked. Only actions that the environment carried out count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.actions import NOTHING_HAPPENS, read_command
from skillpress.environments.alfworld.games import Game, describe
from skillpress.environments.alfworld.tasks import game_path
from skillpress.evaluation.paper.figures import EnvironmentBehavior
from skillpress.evaluation.statistics.behavior import BehaviorFigure, average, count
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, EvaluationSteps, carried_out

LABELS = {
    "never_picked_target": "Failures without the target picked up",
    "two_partial_deliver": "Failures with one of two delivered",
    "picked_no_transform": "Failures with the target not transformed",
    "other": "Other failures",
}
"""The label of each failure mode; the figure counts over all tasks."""
FAILURE_MODES = tuple(LABELS)
TRANSFORMS = {
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
}
"""The command that each task type requires."""
VERBS = (
    "go", "open", "close", "take", "move", "clean", "heat", "cool", "use", "slice",
    "examine", "look", "inventory", "help",
)  # fmt: skip


def failure_mode(task: Task, actions: Sequence[str], observations: Sequence[str]) -> str:
    """What was missing in a failed episode (Table 7): an entry of :data:`FAILURE_MODES`. Actions are in
    either grammar.
    """
    done = (a for a, o in zip(actions, observations, strict=True) if o.strip() != NOTHING_HAPPENS)
    return missing(describe(str(task.spec["game"])), done)


def missing(game: Game, effective: Iterable[str]) -> str:
    """The failure mode of an episode in which exactly these actions were carried out."""
    wanted, destination = game.target_object.lower(), game.destination.lower()
    picked = transformed = False
    delivered: set[str] = set()
    for action in effective:
        command, _ = read_command(action)
        verb, kind, *rest = [*(command or "").split(), "", ""]
        if kind != wanted:
            continue
        picked |= verb == "take"
        transformed |= verb == TRANSFORMS.get(game.task_type)
        if verb == "take":
            delivered.discard(rest[0])
        elif verb == "move" and rest[2:3] == [destination]:
            delivered.add(rest[0])
    if not picked:
        return "never_picked_target"
    if game.task_type == "pick_two_obj_and_place" and len(delivered) == 1:
        return "two_partial_deliver"
    if game.task_type in TRANSFORMS and not transformed:
        return "picked_no_transform"
    return "other"


def alfworld_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """Every figure of this module."""
    return EnvironmentBehavior((redundant_visits(steps), *failure_counts(steps)), action_mix(steps))


def redundant_visits(steps: EvaluationSteps) -> BehaviorFigure:
    """Mean number of ``go to`` in won episodes to a place where the agent had been before (Table 6)."""
    walks = pl.col("action").filter(carried_out() & pl.col("action").str.starts_with("go to "))
    again = walks.len().cast(pl.Int64) - walks.n_unique()
    episodes = steps.filter(pl.col("won")).per_episode(lambda won: won.group_by(EPISODE_KEY).agg(again=again))
    visits = pl.col("again")
    return average("redundant_visits", "Redundant go to", episodes, visits, "per success", table="Table 6")


def failure_counts(steps: EvaluationSteps) -> tuple[BehaviorFigure, ...]:
    """Number of failed episodes of each mode, over all tasks; Table 7 counts those out of distribution."""
    modes = steps.filter(~pl.col("won")).per_episode(_failure_modes)
    return tuple(
        count(f"failures_{mode}", LABELS[mode], modes, pl.col("mode") == mode, "Table 7")
        for mode in FAILURE_MODES
    )


def _failure_modes(steps: pl.DataFrame) -> pl.DataFrame:
    done = steps.group_by(EPISODE_KEY).agg(pl.col("action").filter(carried_out()))
    mode = pl.struct("task_id", "action").map_elements(
        lambda episode: missing(describe(game_path(episode["task_id"])), episode["action"]), pl.String
    )
    return done.select(*EPISODE_KEY, mode=mode)


def action_mix(steps: EvaluationSteps) -> dict[str, int]:
    """Steps of won episodes by their verb; steps that were not carried out are ``Invalid``."""
    verb = pl.col("action").str.extract(r"^(\w+)")
    kind = pl.when(~carried_out()).then(pl.lit("Invalid")).otherwise(verb)
    counts = steps.filter(pl.col("won")).counts(kind)
    return {name: counts[name] for name in (*VERBS, "Invalid")}
