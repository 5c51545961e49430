"""Policies of one experiment on tasks that its training never drew: for pilots, which must not use test
tasks.

    python -m benchmarks.unseen_tasks --workspace FOLDER --params OVERLAY ... [--seed 0] [--tasks 400]
        --policy start=FOLDER --policy NAME=FOLDER ... --kept FOLDER [--result FILE]

The tasks are the workspace's validation tasks and others of the same kind as its training tasks, found by
drawing twice as many training tasks. Each policy plays each of them ``evaluation.votes`` times as in an
evaluation; each is compared with the first, paired over tasks (docs/evaluation.md). The folder ``--kept``
keeps finished policies, and an interrupted run continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.lag import changed
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import scan_rollouts
from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.evaluation.statistics import Comparison, EvaluationSteps, compare, evaluate, evaluation_steps
from skillpress.experiment.collection import CollectionJob, play_episodes, play_of
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.files import split_file


def unseen_tasks(params: Params, workspace: Path, count: int) -> list[Task]:
    """The validation tasks, and other tasks that are in no split of the workspace.

    Raises:
        ValueError: there are too few.
        TaskError: a drawn task repeats a task of the workspace under another name.
    """
    splits = {name: read_tasks(workspace / split_file(name)) for name in ("train", "validation", "test")}
    there = [task for tasks in splits.values() for task in tasks]
    taken = {task.task_id for task in there}
    sizes = SplitSizes(2 * params.tasks.train, params.tasks.validation, params.tasks.test)
    drawn = params.environment.checked_tasks(sizes, params.seed)
    others = [task for task in drawn if task.split == "train" and task.task_id not in taken]
    params.environment.check_tasks([*there, *others])  # a different name does not make a different task
    tasks = [*splits["validation"], *others][:count]
    if len(tasks) < count:
        raise ValueError(f"--tasks: is {count}; there are {len(tasks)} that training did not draw")
    return tasks


def played(params: Params, tasks: Sequence[Task], name: str, policy: Path, kept: Path) -> EvaluationSteps:
    """A policy's episodes, read from the folder if they are there."""
    file = kept / f"{name}.parquet"
    if not file.exists():
        # All play under one name, so that episodes of two policies have the same random numbers.
        plays = [play_of(params, tasks, "policy", policy)]
        store = ResumeStore(kept / "unfinished", name)
        play_episodes(
            CollectionJob(params=params, sampling="evaluation", plays=plays, store=store),
            file,
            lambda more: None,
        )
        store.clear()
    return evaluation_steps(scan_rollouts(file))


def row(
    params: Params, tasks: Sequence[Task], steps: EvaluationSteps, first: EvaluationSteps
) -> dict[str, Any]:
    """A policy's success, overall and by stratum, and its difference from the first policy's."""
    section, longest = params.evaluation, params.environment.max_steps
    summary = evaluate(steps, tasks, runs=section.runs, votes=section.votes, max_steps=longest)
    found = compare(first, steps, max_steps=longest, seed=params.seed, votes=section.votes)
    return {
        "pass_at_1": summary.pass_at_1.mean,
        "sc": summary.self_consistency.mean,
        "strata": {stratum: each.mean for stratum, each in summary.strata.items()},
        **differences(found),
    }


def differences(found: Comparison) -> dict[str, list[float]]:
    """Difference, low and high, of Pass@1 and of the votes."""
    tests = {"difference": found.tests[-1], "sc_difference": found.verdicts or found.tests[-1]}
    return {key: [test.difference, test.low, test.high] for key, test in tests.items()}


def measure(
    params: Params, workspace: Path, count: int, policies: Mapping[str, Path], kept: Path
) -> dict[str, Any]:
    """The record of all policies."""
    tasks = unseen_tasks(params, workspace, count)
    episodes = {name: played(params, tasks, name, policy, kept) for name, policy in policies.items()}
    first = next(iter(episodes.values()))
    return {
        "tasks": len(tasks),
        "seed": params.seed,
        "runs": params.evaluation.runs,
        "votes": params.evaluation.votes,
        "temperature": params.evaluation.temperature,
        "rows": {name: row(params, tasks, steps, first) for name, steps in episodes.items()},
    }


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--workspace", type=Path, required=True, help="workspace of a training from this start"
    )
    parser.add_argument("--params", action="append", default=[], help="overlays of params.yaml")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument(
        "--policy", action="append", required=True, help="NAME=FOLDER; the first one is the start"
    )
    parser.add_argument("--kept", type=Path, required=True, help="keeps episodes of finished policies")
    parser.add_argument("--result", type=Path, required=True)
    chosen = parser.parse_args()
    params = changed(load_params("params.yaml", *chosen.params), seed=chosen.seed)
    policies = {name: Path(folder) for name, folder in (each.split("=", 1) for each in chosen.policy)}
    chosen.kept.mkdir(parents=True, exist_ok=True)
    write_json(chosen.result, measure(params, chosen.workspace, chosen.tasks, policies, chosen.kept))


if __name__ == "__main__":
    main()
