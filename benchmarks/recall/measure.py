"""One measurement of ``python -m benchmarks.recall``, and all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.imitation_seeds import play
from benchmarks.lag import changed
from benchmarks.methods import prepare
from skillpress.core.interface import AgentState
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import read_tasks
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.experiment.training import job_in, train
from skillpress.models.policy import load_policy

WAYS: Mapping[str, Mapping[str, Any]] = {
    "window": {"state_update": "window"},
    "learned memory": {"state_update": "learned", "memory": {"length": 2, "alphabet": 16}},
    "store": {"state_update": "store", "store": {"shown": 1, "length": 12}},
}
"""Way of remembering to its keys of ``policy``."""


def measure(params: Params, folder: Path) -> dict[str, Any]:
    """One way with one seed: shares of test tasks won, and processor seconds."""
    torch.set_num_threads(1)
    began = time.process_time()
    prepare(params, folder)
    train(job_in(folder, params, folder))
    seconds = time.process_time() - began
    tasks = read_tasks(folder / "test.parquet")
    return {
        name: float(np.mean([episode.won for episode in play(params, load_policy(path), tasks, 1, "recall")]))
        for name, path in (("start", folder / "start"), ("trained", folder / "policy"))
    } | {"cpu_seconds": round(seconds, 1)}


def nearest(params: Params, folder: Path) -> float:
    """Share of test tasks in which the last prompt shows the sign of the door, if the oracle plays."""
    update, section = Experiment(params).state_update, params.environment
    tasks, found = read_tasks(folder / "test.parquet"), []
    for task in tasks:
        corridor = section.make()
        observation, info = corridor.reset(task)
        state = AgentState(task=task, observation=observation, info=info)
        for action in section.make_oracle()(task, 0.0, 0)[:-1]:
            observation, _, _, info = corridor.step(action)
            state = update(state, "", action, observation, info)
        found.append(task.spec["word"] in state.notes.split())
    return float(np.mean(found))


def compare(params: Params, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """Every way with every seed."""
    found: dict[str, Any] = {}
    for way, keys in WAYS.items():
        runs = []
        for seed in seeds:
            own = folder / f"{way.replace(' ', '-')}-{seed}"
            experiment = changed(params, seed=seed, policy=dict(keys))
            if not (own / "result.json").exists():
                write_json(own / "result.json", measure(experiment, own))
            runs.append(read_json(own / "result.json"))
        found[way] = {"policy": dict(keys), "seeds": runs} | {
            name: float(np.mean([run[name] for run in runs])) for name in ("start", "trained")
        }
        if way == "store":
            found[way]["nearest"] = nearest(experiment, own)
    return found
