"""The contents of a finished experiment's report, read from the files that its stages wrote. Its example is
one task, won both before and after training.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import polars as pl

from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.trajectory import Task, Trajectory, step_skills
from skillpress.environments.section import Projection
from skillpress.evaluation.analysis.mdl_report import read_phrases
from skillpress.evaluation.paper import environment_figures
from skillpress.evaluation.paper.correspondence import correspondences
from skillpress.evaluation.statistics import EvaluationSteps
from skillpress.evaluation.statistics.episodes import episode_table, was_carried_out
from skillpress.pipeline.files import (
    DICTIONARY,
    EVALUATION_ROLLOUTS,
    HISTORY,
    PHRASES,
    START,
    TRAINED,
)
from skillpress.pipeline.finished.effect import ADVICE, Effect, effect_of
from skillpress.pipeline.finished.paper_tables import tables_or_reason
from skillpress.pipeline.finished.results import comparisons, curves, policy_results, scaling
from skillpress.pipeline.finished.run import FinishedRun
from skillpress.pipeline.revision import revision
from skillpress.reports.report.data import Example, ExampleStep, ReportData
from skillpress.skills.dictionary import SkillDictionary, load_fitted
from skillpress.skills.history import read_history

LIBRARIES = ("skillpress", "torch", "transformers", "deepspeed", "polars", "numpy")
BENCHMARK = Path("benchmarks/results/dictionary.json")
"""Measured once per machine by ``python -m benchmarks.dictionary``, and committed."""


def report_data(run: FinishedRun, episodes_page: str) -> ReportData:
    """The report of the experiment here, or ``StorageError``; ``episodes_page`` is the page beside it."""
    dictionary = load_fitted(DICTIONARY)
    tables, notes = tables_or_reason([run])
    found = effect_of(run.results, run.params.training.steps)
    return ReportData(
        title=f"skillpress: {run.played}, {run.method.label}, seed {run.seed}",
        verdict=verdict(found),
        advice=f"../{ADVICE}" if found.advice else "",
        policies=policy_results(run, TRAINED),
        curves=curves(run, TRAINED),
        comparisons=comparisons(run.results),
        dictionary=dictionary,
        phrases=read_phrases(PHRASES),
        history=read_history(HISTORY),
        library=run.library,
        correspondences=correspondences(
            environment_figures(run.environment).named_skills, run.last_dictionary, run.library
        ),
        scaling=scaling(BENCHMARK),
        examples=examples(run, dictionary),
        paper_tables=tables,
        paper_notes=notes,
        parameters=run.params.model_dump(mode="json"),
        episodes_page=episodes_page,
        versions={"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
        | {name: version(name) for name in LIBRARIES},
    )


def verdict(found: Effect) -> str:
    """The report's first sentences."""
    return f"{found.sentences} In brackets: 95% intervals over tasks, each by itself, for these policies."


READABLE = 12
"""An example episode has at most this many steps."""


def examples(run: FinishedRun, dictionary: SkillDictionary | None) -> list[Example]:
    """One task that was won both before and after training, cut into phrases.

    The choice is among the tasks that both policies won in at most ``READABLE`` steps: the one on which
    training saved the most steps (the first by id among equals). The list is empty if there is no such task.
    """
    before, after = (shortest_wins(run.unchecked_steps(policy)) for policy in (START, TRAINED))
    saved = pl.col("length") - pl.col("length_after")
    both = before.join(after, on="task_id", suffix="_after").sort(-saved, "task_id")
    if not both.height:
        return []
    chosen = both.row(0, named=True)
    task = next(task for task in run.tasks if task.task_id == chosen["task_id"])
    environment = run.params.environment
    words, _ = environment.make().reset(task)
    return [
        example(
            title,
            f"Task {task.task_id}. {words}",
            projection=environment.make_projection(),
            task=task,
            trajectory=played(policy, task, chosen[f"run{after}"], chosen[f"rollout_index{after}"]),
            dictionary=dictionary,
        )
        for title, policy, after in (("Before training", START, ""), ("After training", TRAINED, "_after"))
    ]


def shortest_wins(steps: EvaluationSteps) -> pl.DataFrame:
    """A row per won task: its shortest win (the first among equals), if that is short enough to read."""
    wins = episode_table(steps).filter("won", pl.col("length") <= READABLE)
    return wins.sort("length", maintain_order=True).unique("task_id", keep="first")


def played(policy: str, task: Task, run: int, rollout: int) -> Trajectory:
    """One episode of the evaluation, without tokens."""
    wanted = {"policy": policy, "task_id": task.task_id, "run": run, "rollout_index": rollout}
    this = pl.all_horizontal(pl.col(name) == value for name, value in wanted.items())
    (trajectory,) = iterate_rollouts(EVALUATION_ROLLOUTS, this, tokens=False)
    return trajectory


def example(
    title: str,
    told: str,
    projection: Projection,
    task: Task,
    trajectory: Trajectory,
    dictionary: SkillDictionary | None,
) -> Example:
    """A trajectory in the form that the report shows."""
    steps = [
        ExampleStep(step.action, skills, not was_carried_out(step.action, step.invalid))
        for step, skills in zip(trajectory.steps, step_skills(projection, task, trajectory), strict=True)
    ]
    return Example.of(f"{title} ({len(steps)} steps)", told, steps, dictionary)
