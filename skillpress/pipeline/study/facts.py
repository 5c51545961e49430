"""Facts that the environment stated at the end of won episodes, such as whether a win was by routine.

Rollout files have no facts (``Info.measures``), but an environment is deterministic given its task, so that
the recorded actions give them again. Only the facts that a plan's outcomes name are looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from skillpress.core.errors import UserError
from skillpress.core.interface import Environment
from skillpress.core.trajectory import Task
from skillpress.environments import environment_class
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.pipeline.files import POLICIES
from skillpress.pipeline.finished.run import FinishedRun

FACT_SCHEMA = pl.Schema(
    [
        ("task_id", pl.String()),
        ("policy", pl.String()),
        ("fact", pl.String()),
        ("values", pl.List(pl.Float32)),
    ]
)
"""A row per task, policy and fact: a value for each of the task's won episodes, run by run. A task that was
never won has no row."""


class FactError(UserError):
    """A fact required by the plan is not available; the message says why."""


def check_facts(environment: str, asked: Collection[str]) -> None:
    """Raise ``FactError`` if the environment does not state one of the facts, or cannot be replayed here."""
    found = environment_class(environment)
    for name in asked:
        if found.measures is None or name not in found.measures:
            stated = ", ".join(found.measures or ()) or "none"
            raise FactError(
                f"measure_{name}: {environment} states no fact {name!r} at the end; it states {stated}"
            )
    if asked and found.hosting != "in_process":
        raise FactError(
            f"measure_{min(asked)}: episodes of {environment} are not played again, since it runs in other "
            "processes; leave the outcome out"
        )


def facts_of(run: FinishedRun, asked: Sequence[str]) -> pl.DataFrame:
    """Rows of :data:`FACT_SCHEMA` of a finished run's evaluation; empty if no fact is asked for.

    Raises:
        FactError: an episode that was won is not won by the same actions.
        UserError: the evaluation is not complete.
    """
    if not asked:
        return FACT_SCHEMA.to_frame()
    tasks = {task.task_id: task for task in run.tasks}
    environment = run.params.environment.make()
    found: dict[tuple[str, str, str], list[float]] = {}
    for policy in POLICIES:
        won = MethodEpisodes(steps=run.steps(policy).filter(pl.col("won")), tasks=tasks)
        for episode in won.trajectories():
            stated = played_again(environment, tasks[episode.task_id], episode.actions)
            for name in asked:
                found.setdefault((episode.task_id, policy, name), []).append(stated[name])
    rows = [(*key, values) for key, values in sorted(found.items())]
    return pl.DataFrame(rows, FACT_SCHEMA, orient="row")


def played_again(environment: Environment, task: Task, actions: Iterable[str]) -> Mapping[str, Any]:
    """The facts at the end of a won episode, replayed with these actions. Raises ``FactError``."""
    environment.reset(task)
    info = None
    for action in actions:
        _, _, _, info = environment.step(action)
    if info is None or not info.won:
        raise FactError(
            f"task {task.task_id}: its recorded actions no longer win, so the environment has changed "
            "since they were played; make the run again"
        )
    return info.measures
