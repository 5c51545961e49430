"""Stage: the page that shows what came out, a page of episodes, and the environment's behaviour figures."""

from __future__ import annotations

import platform
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from skillpress.console.viewing.experiment import known_phrases, rollout_source
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.storage import write_json, write_text
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments import bundle
from skillpress.environments.bundle import Projection
from skillpress.measure.analysis.mdl_report import read_phrases
from skillpress.measure.evaluation import EvaluationSteps
from skillpress.measure.evaluation.episodes import episode_table
from skillpress.measure.paper import environment_figures
from skillpress.measure.paper.correspondence import correspondences
from skillpress.pipeline.files import (
    DICTIONARY,
    EVALUATION_ROLLOUTS,
    HISTORY,
    PHRASES,
    RESULTS,
    START,
    TRAINED,
    TRAINING_ROLLOUTS,
)
from skillpress.pipeline.finished.effect import ADVICE, Effect, effect
from skillpress.pipeline.finished.paper_tables import tables_or_reason
from skillpress.pipeline.finished.results import comparisons, curves, policy_results, scaling
from skillpress.pipeline.finished.run import FinishedRun, read_run
from skillpress.pipeline.revision import revision
from skillpress.show.report import Example, ExampleStep, ReportData, render_report
from skillpress.show.viewer.catalogue import Catalogue
from skillpress.show.viewer.embedded import episodes_page
from skillpress.show.viewer.sample import sample
from skillpress.skills.dictionary import SkillDictionary, load_fitted
from skillpress.skills.history import read_history

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage

LIBRARIES = ("skillpress", "torch", "transformers", "deepspeed", "polars", "numpy")
BENCHMARK = Path("benchmarks/results/dictionary.json")
"""Measured once per machine by ``python -m benchmarks.dictionary`` and committed."""
EPISODES = RESULTS / "episodes.html"
READABLE = 12
"""Steps in the longest episode that is still shown as an example."""


def main(stage: Stage) -> None:
    """Write results/report.html, results/episodes.html and results/behavior.json, and keep the pages in
    MLflow."""
    run, dictionary = read_run(Path()), load_fitted(DICTIONARY)
    results = policy_results(run, TRAINED)
    tables, notes = tables_or_reason([run])
    compared = comparisons(RESULTS)
    change = effect(compared, run.params.training.steps)
    data = ReportData(
        title=f"skillpress: {run.played}, seed {run.seed}",
        verdict="" if change is None else verdict(change),
        advice=f"../{ADVICE}" if change is not None and change.worse else "",
        policies=results,
        curves=curves(run, TRAINED),
        comparisons=compared,
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
        episodes_page=EPISODES.name,
        versions={"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
        | {name: version(name) for name in LIBRARIES},
    )
    behavior = {
        policy: {f.key: f.value for f in result.environment_behavior.figures if f.value is not None}
        for policy, result in zip(run.policies, results, strict=True)
    }
    write_json(RESULTS / "behavior.json", behavior)
    page = RESULTS / "report.html"
    write_text(page, render_report(data))
    write_text(EPISODES, some_episodes(run))
    stage.run.log_summary({f"{policy}/{k}": v for policy, row in behavior.items() for k, v in row.items()})
    stage.run.log_file(page)
    stage.run.log_file(EPISODES)


def verdict(change: Effect) -> str:
    """The report's first sentences."""
    said = change.sentence
    return f"{said[0].upper()}{said[1:]}. In brackets: the 95% interval over tasks, for these two policies."


def some_episodes(run: FinishedRun) -> str:
    """A page with a sample of the evaluation's episodes and of those that training learned from."""
    home = Path()
    sources = [rollout_source(home, path, path.stem) for path in (EVALUATION_ROLLOUTS, TRAINING_ROLLOUTS)]
    title = f"Episodes of {run.played}, seed {run.seed}"
    with closing(Catalogue(title, sources, known_phrases(home))) as catalogue:
        chosen = sample(catalogue.table(), run.seed)
        return episodes_page(catalogue, chosen.groups, chosen.note)


def examples(run: FinishedRun, dictionary: SkillDictionary | None) -> list[Example]:
    """One task as it was won before training and after, cut into phrases.

    Of the tasks that both policies won in at most ``READABLE`` steps, the one on which training saved
    the most steps (the first by id among equals); none when there is no such task.
    """
    before, after = (shortest_wins(run.unchecked_steps(policy)) for policy in (START, TRAINED))
    saved = pl.col("length") - pl.col("length_after")
    both = before.join(after, on="task_id", suffix="_after").sort(-saved, "task_id")
    if not both.height:
        return []
    chosen = both.row(0, named=True)
    task = next(task for task in run.tasks if task.task_id == chosen["task_id"])
    environment = bundle(run.environment)
    words, _ = environment.make(run.params.environment).reset(task)
    return [
        example(
            title,
            f"Task {task.task_id}. {words}",
            environment.projection_of(run.params.environment),
            task,
            played(policy, task, chosen[f"run{after}"], chosen[f"rollout_index{after}"]),
            dictionary,
        )
        for title, policy, after in (("Before training", START, ""), ("After training", TRAINED, "_after"))
    ]


def shortest_wins(steps: EvaluationSteps) -> pl.DataFrame:
    """A row for each task that was won: the episode of its shortest win (the first among equals), where
    that is readable."""
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
    """A trajectory as the report shows it."""
    labels = projection(task, trajectory)
    steps = [
        ExampleStep(step.action, label, step.invalid is not None)
        for step, label in zip(trajectory.steps, labels, strict=True)
    ]
    return Example.of(f"{title} ({len(steps)} steps)", told, steps, dictionary)
