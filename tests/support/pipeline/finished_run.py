"""The folder of a finished experiment, without a training: every policy is the random explorer."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.task_files import write_tasks
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, split_file
from skillpress.rollouts.collection import requests
from skillpress.training.loop.keeping.selected_checkpoint import SelectedCheckpoint

SMALL = {
    "tasks": {"train": 1, "validation": 1, "test": 24},
    "evaluation": {"runs": 2, "votes": 1},
    "sampling": {"slots": 64},
    "training": {"steps": 7},
}


def play_run(folder: Path, repository: Path, *overlays: dict[str, Any]) -> Path:
    """A folder like that of a finished experiment; every policy is the random explorer."""
    values = read_yaml(repository / "params.yaml")
    for overlay in (SMALL, *overlays):
        values = merge(values, overlay)
    params = check_params(values, "test")
    experiment, section = Experiment(params), params.evaluation
    made = params.environment.checked_tasks(params.tasks.make(), params.seed)
    tasks = [task for task in made if task.split == "test"]
    episodes = []
    for policy, step in (("explorer", 0), ("start", 0), ("trained", params.training.steps)):
        wanted = [
            request
            for run in range(section.runs)
            for request in requests(
                tasks, section.votes, params.seed, policy, f"run-{run}", policy=policy, run=run
            )
        ]
        episodes += experiment.collector(experiment.explorer()).collect(wanted, policy_version=step)
    (folder / "results").mkdir(parents=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    write_tasks(folder / split_file("test"), tasks)
    write_rollouts(folder / EVALUATION_ROLLOUTS, episodes)
    evaluation = {
        "checkpoint": asdict(SelectedCheckpoint("last", params.training.steps, None)),
        "policies": {},
        "comparisons": {},
    }
    (folder / "results" / "evaluation.json").write_text(json.dumps(evaluation))
    return folder
