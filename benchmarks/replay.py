"""Trainings that replay groups of earlier steps (``training.replay``) against trainings without replay.

    python -m benchmarks.replay [--params OVERLAY] [--steps 30] [--seeds 0 1 2] [--folder FOLDER]

Three arms start from the same policy, in a given experiment or in the smoke experiment with 16 groups of 8:

    new      16 new groups a step
    replay   12 new groups and 4 of the last four steps, corrected by truncated weights per token
    fewer    12 new groups: shows what the replayed groups add to the same environment steps

The result has the environment steps and the learner's tokens per optimizer update, the seconds of a step's
parts, and success on held-out tasks (one episode each, temperature 1). Its standard error is over tasks
alone.

With ``--folder`` the starts and finished measurements are kept there, and an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.lag import changed, prepare
from skillpress.core.storage import read_json, write_json
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.experiment.training import job_in, train
from skillpress.models.policy import load_policy
from skillpress.rollouts.collection import requests

GROUPS, REPLAYED, STALENESS = 16, 4, 4
HELD_OUT = 512
"""Number of tasks that trained policies are tested on."""
ARMS: dict[str, dict[str, Any]] = {
    "new": {"training": {"tasks_per_step": GROUPS}},
    "replay": {
        "training": {
            "tasks_per_step": GROUPS - REPLAYED,
            "replay": {"groups": REPLAYED, "staleness": STALENESS},
        },
        "algorithm": {"importance": "token"},
    },
    "fewer": {"training": {"tasks_per_step": GROUPS - REPLAYED}},
}


def measure(params: Params, folder: Path) -> dict[str, Any]:
    """One training, and its policy's results on held-out tasks."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        job = job_in(Path(name), params, folder)
        curve = train(job)
        won = held_out(params, job.output)
    training = params.training
    episodes = training.tasks_per_step * training.rollouts_per_task
    return {
        "environment_steps_per_update": statistics.fmean(
            row["episode_length"] * episodes / training.minibatches for row in curve
        ),
        "tokens_per_update": statistics.fmean(row["tokens_sampled"] / training.minibatches for row in curve),
        "staleness": statistics.fmean(row["staleness"] for row in curve),
        "truncated": statistics.fmean(row.get("importance/truncated", 0.0) for row in curve),
        "seconds_rollout": statistics.median(row["seconds/rollout"] for row in curve),
        "seconds_update": statistics.median(row["seconds/update"] for row in curve),
        "won": won,
    }


def held_out(params: Params, model: Path) -> float:
    """The share of held-out tasks that a policy wins, with one episode each."""
    experiment = Experiment(params)
    sizes = SplitSizes(params.tasks.train, 1, HELD_OUT)
    made = params.environment.checked_tasks(sizes, params.seed)
    tasks = [task for task in made if task.split == "test"]
    policy = load_policy(model)
    agent = experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)
    with experiment.collector(agent) as collector:
        return statistics.fmean(each.won for each in collector.collect(requests(tasks, 1, 0, "held out")))


def compare(params: Params, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """All arms for each seed."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ARMS}
    starts = []
    for seed in seeds:
        own = folder / f"seed-{seed}"
        prepare(changed(params, seed=seed), own)
        starts.append(held_out(changed(params, seed=seed), own / "start"))
        for name, sections in ARMS.items():
            kept = own / f"{name}-{params.training.steps}.json"
            if not kept.exists():
                write_json(kept, measure(changed(changed(params, seed=seed), **sections), own))
            runs[name].append(read_json(kept))
    means = {
        name: {key: statistics.fmean(run[key] for run in found) for key in found[0]}
        for name, found in runs.items()
    }
    return {
        "steps": params.training.steps,
        "start_won": statistics.fmean(starts),
        "means": means,
        "won": {name: [run["won"] for run in found] for name, found in runs.items()},
        "standard_error_of_tasks": (0.25 / (HELD_OUT * len(seeds))) ** 0.5,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--folder", type=Path, help="keeps starts and finished measurements")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    small = {
        "processes": 1,
        "imitation": {"demonstrations": 15000, "epochs": 2},
        "training": {"rollouts_per_task": 8, "steps": chosen.steps, "checkpoint_every": 10},
    }
    given = chosen.params or ["params/smoke.yaml"]
    params = changed(load_params("params.yaml", *given), **small)
    with tempfile.TemporaryDirectory() as name:
        result = compare(params, chosen.seeds, (chosen.folder or Path(name)).resolve())
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
