"""Stage: the page that shows what came out."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage

if TYPE_CHECKING:
    from skillpress.report import Example
    from skillpress.skills import SkillDictionary
    from skillpress.trajectory import Task, Trajectory

LIBRARIES = ("skillpress", "torch", "transformers", "deepspeed", "polars", "numpy")
BENCHMARK = Path("benchmarks/results/dictionary.json")
"""Measured once per machine by ``python -m benchmarks.dictionary`` and committed."""
READABLE = 12
"""Steps in the longest episode that is still shown as an example."""


def main(stage: Stage) -> None:
    """Write results/report.html and keep it in MLflow."""
    from skillpress.environments import bundle
    from skillpress.report import ReportData, render_report
    from skillpress.skills.drift import read_history
    from skillpress.storage import write_text
    from skillpress.trajectory import read_rollouts
    from tasks.data import EVALUATION_ROLLOUTS, HISTORY, RESULTS, load_fitted, load_phrases, load_tasks
    from tasks.paper_tables import where_they_fit
    from tasks.results import TRAINED, comparisons, curves, policy_results, scaling
    from tasks.runs import read_run
    from tasks.tracking import revision

    params = stage.params
    dictionary = load_fitted()
    tasks = load_tasks(bundle(params.environment.name))["test"]
    tables, notes = where_they_fit([read_run(Path())])
    data = ReportData(
        title=f"skillpress: {params.environment.name}, seed {params.seed}",
        policies=policy_results(RESULTS, TRAINED, params.seed),
        curves=curves(RESULTS, TRAINED, params.seed),
        comparisons=comparisons(RESULTS),
        dictionary=dictionary,
        phrases=load_phrases(),
        history=read_history(HISTORY),
        scaling=scaling(BENCHMARK),
        examples=examples(stage, tasks, read_rollouts(EVALUATION_ROLLOUTS), dictionary),
        paper_tables=tables,
        paper_notes=notes,
        parameters=params.model_dump(mode="json"),
        versions={"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
        | {name: version(name) for name in LIBRARIES},
    )
    page = RESULTS / "report.html"
    write_text(page, render_report(data))
    stage.run.log_file(page)


def examples(
    stage: Stage, tasks: Sequence[Task], rollouts: Sequence[Trajectory], dictionary: SkillDictionary | None
) -> list[Example]:
    """One task as it was won before training and after, cut into phrases.

    Of the tasks that both policies won in at most ``READABLE`` steps, the one on which training saved
    the most steps (the first by id among equals); none when there is no such task.
    """
    before, after = (shortest_wins(rollouts, policy) for policy in ("start", "trained"))
    both = sorted(before.keys() & after.keys())
    if not both:
        return []
    chosen = max(both, key=lambda task: len(before[task].steps) - len(after[task].steps))
    task = next(task for task in tasks if task.task_id == chosen)
    return [
        example(stage, title, task, trajectory, dictionary)
        for title, trajectory in (("Before training", before[chosen]), ("After training", after[chosen]))
    ]


def shortest_wins(rollouts: Sequence[Trajectory], policy: str) -> dict[str, Trajectory]:
    """Task to its shortest win by the policy, where that is readable."""
    wins: dict[str, Trajectory] = {}
    for trajectory in rollouts:
        if trajectory.won and trajectory.group_id.startswith(f"{policy}/"):
            best = wins.setdefault(trajectory.task_id, trajectory)
            if len(trajectory.steps) < len(best.steps):
                wins[trajectory.task_id] = trajectory
    return {task: win for task, win in wins.items() if len(win.steps) <= READABLE}


def example(
    stage: Stage, title: str, task: Task, trajectory: Trajectory, dictionary: SkillDictionary | None
) -> Example:
    """A trajectory as the report shows it; the task is told by its id and the world's first words."""
    from skillpress.environments import bundle
    from skillpress.report import Example, ExampleStep

    world = bundle(stage.params.environment.name)
    words, _ = world.make(stage.params.environment).reset(task)
    labels = world.projection(task, trajectory)
    steps = [
        ExampleStep(step.action, label, step.invalid is not None)
        for step, label in zip(trajectory.steps, labels, strict=True)
    ]
    title = f"{title} ({len(steps)} steps)"
    return Example.of(title, f"Task {task.task_id}. {words}", steps, dictionary)


if __name__ == "__main__":
    leave(run_stage("report", main))
