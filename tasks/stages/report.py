"""Stage: the page that shows what came out, and the behaviour figures of the environment."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from skillpress.analysis.mdl_report import read_phrases
from skillpress.environments import EnvironmentBundle, bundle
from skillpress.report import Example, ExampleStep, ReportData, render_report
from skillpress.skills.dictionary import SkillDictionary, load_fitted
from skillpress.skills.history import read_history
from skillpress.storage import write_json, write_text
from skillpress.trajectory import Task, Trajectory, read_rollouts
from tasks.files import DICTIONARY, EVALUATION_ROLLOUTS, HISTORY, PHRASES, RESULTS, START, TRAINED
from tasks.finished.paper_tables import tables_or_reason
from tasks.finished.results import comparisons, curves, policy_results, scaling
from tasks.finished.run import FinishedRun, read_run
from tasks.revision import revision

if TYPE_CHECKING:
    from tasks.stage import Stage

LIBRARIES = ("skillpress", "torch", "transformers", "deepspeed", "polars", "numpy")
BENCHMARK = Path("benchmarks/results/dictionary.json")
"""Measured once per machine by ``python -m benchmarks.dictionary`` and committed."""
READABLE = 12
"""Steps in the longest episode that is still shown as an example."""


def main(stage: Stage) -> None:
    """Write results/report.html and results/behavior.json, and keep the page in MLflow."""
    run, dictionary = read_run(Path()), load_fitted(DICTIONARY)
    results = policy_results(run, TRAINED)
    tables, notes = tables_or_reason([run])
    data = ReportData(
        title=f"skillpress: {run.environment}, seed {run.seed}",
        policies=results,
        curves=curves(run, TRAINED),
        comparisons=comparisons(RESULTS),
        dictionary=dictionary,
        phrases=read_phrases(PHRASES),
        history=read_history(HISTORY),
        scaling=scaling(BENCHMARK),
        examples=examples(run, dictionary),
        paper_tables=tables,
        paper_notes=notes,
        parameters=run.params.model_dump(mode="json"),
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
    stage.run.log_summary({f"{policy}/{k}": v for policy, row in behavior.items() for k, v in row.items()})
    stage.run.log_file(page)


def examples(run: FinishedRun, dictionary: SkillDictionary | None) -> list[Example]:
    """One task as it was won before training and after, cut into phrases.

    Of the tasks that both policies won in at most ``READABLE`` steps, the one on which training saved
    the most steps (the first by id among equals); none when there is no such task.
    """
    rollouts = read_rollouts(EVALUATION_ROLLOUTS)
    before, after = (shortest_wins(rollouts, policy) for policy in (START, TRAINED))
    both = sorted(before.keys() & after.keys())
    if not both:
        return []
    chosen = max(both, key=lambda task: len(before[task].steps) - len(after[task].steps))
    task = next(task for task in run.tasks if task.task_id == chosen)
    environment = bundle(run.environment)
    words, _ = environment.make(run.params.environment).reset(task)
    return [
        example(title, f"Task {task.task_id}. {words}", environment, task, trajectory, dictionary)
        for title, trajectory in (("Before training", before[chosen]), ("After training", after[chosen]))
    ]


def shortest_wins(rollouts: Sequence[Trajectory], policy: str) -> dict[str, Trajectory]:
    """Task to its shortest win by the policy, where that is readable."""
    wins: dict[str, Trajectory] = {}
    for trajectory in rollouts:
        if trajectory.won and trajectory.policy == policy:
            best = wins.setdefault(trajectory.task_id, trajectory)
            if len(trajectory.steps) < len(best.steps):
                wins[trajectory.task_id] = trajectory
    return {task: win for task, win in wins.items() if len(win.steps) <= READABLE}


def example(
    title: str,
    told: str,
    environment: EnvironmentBundle,
    task: Task,
    trajectory: Trajectory,
    dictionary: SkillDictionary | None,
) -> Example:
    """A trajectory as the report shows it."""
    labels = environment.projection(task, trajectory)
    steps = [
        ExampleStep(step.action, label, step.invalid is not None)
        for step, label in zip(trajectory.steps, labels, strict=True)
    ]
    return Example.of(f"{title} ({len(steps)} steps)", told, steps, dictionary)
