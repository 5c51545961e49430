"""Training with rollouts that are one step behind (``training.lag`` 1) against training without lag.

    python -m benchmarks.lag [--params OVERLAY] [--steps 20] [--seeds 0] [--processes 1 2] [--folder FOLDER]

For each seed an experiment's policy is imitated once. Then, for each number of processes, lag 0 and lag 1
take turns from that start, each in its own process. Seconds per step are means over all steps except the
first, including checkpoints and the on-policy step after each of them. The parts are rank 0's (``rollout`` is
its wait for rollouts). Success is that of the last ten steps' own rollouts; a comparison of methods needs the
held-out tasks (``python -m flows.ablation``). Times on a busy machine are useful as ratios only; the result
includes the load.

With ``--folder`` the starts and finished measurements are kept there, and an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.training_folder import job_in
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import write_tasks
from skillpress.environments import bundle
from skillpress.environments.bundle import SplitSizes
from skillpress.experiment.imitation import ImitationJob, imitate_demonstrations
from skillpress.experiment.params import Params, check_params, load_params, merge
from skillpress.experiment.training import train

LAST = 10
"""Steps over which success is averaged."""


def changed(params: Params, **sections: Any) -> Params:
    """The experiment with some keys changed."""
    return check_params(merge(params.model_dump(mode="json"), sections), "benchmark")


def prepare(params: Params, folder: Path) -> None:
    """Make the tasks and the start of one seed."""
    if (folder / "start").is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sizes = SplitSizes(params.tasks.train, 1, 1)
    made = list(bundle(params.environment.name).make_tasks(params.environment, sizes, params.seed))
    write_tasks(folder / "train.parquet", [task for task in made if task.split == "train"])
    store = ResumeStore(folder, "unfinished")
    job = ImitationJob(params, folder / "train.parquet", output=folder / "start", store=store)
    imitate_demonstrations(job, lambda rank, progress: None)


def measure(params: Params, folder: Path) -> dict[str, Any]:
    """One training."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        job = job_in(Path(name), params, folder)
        ends: list[float] = []
        load = os.getloadavg()[0]
        curve = train(job, lambda step, metrics: ends.append(time.perf_counter()))
    parts = [name for name in curve[-1] if name.startswith("seconds/")]
    logged = ("clip_fraction", "approximate_kl", "gradient_norm", "staleness")
    return {
        "seconds_per_step": (ends[-1] - ends[0]) / (len(ends) - 1),
        "parts": {name: statistics.fmean(row.get(name, 0.0) for row in curve[1:]) for name in parts},
        "environment_steps_per_second": statistics.fmean(
            row["environment_steps_per_second"] for row in curve[1:]
        ),
        "success": statistics.fmean(row["success"] for row in curve[-LAST:]),
        **{name: statistics.fmean(row[name] for row in curve if name in row) for name in logged},
        "load": {"before": load, "after": os.getloadavg()[0]},
    }


def in_own_process(params: Params, folder: Path) -> dict[str, Any]:
    """:func:`measure` in a fresh process, where nothing is warm."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, params, folder).result()


def compare(params: Params, seeds: Sequence[int], processes: Sequence[int], folder: Path) -> dict[str, Any]:
    """Both lags for each seed and number of processes, including those kept in the folder."""
    found: dict[str, Any] = {}
    for seed in seeds:
        own = folder / f"seed-{seed}"
        prepare(changed(params, seed=seed), own)
        for number in processes:
            for lag in (0, 1):
                kept = own / f"processes-{number}-lag-{lag}.json"
                if not kept.exists():
                    variant = changed(params, seed=seed, processes=number, training={"lag": lag})
                    write_json(kept, in_own_process(variant, own))
                found[f"seed {seed}, processes {number}, lag {lag}"] = read_json(kept)
    ratios = {
        number: statistics.median(
            found[f"seed {seed}, processes {number}, lag 0"]["seconds_per_step"]
            / found[f"seed {seed}, processes {number}, lag 1"]["seconds_per_step"]
            for seed in seeds
        )
        for number in processes
    }
    return {"times_as_fast": ratios, "steps": params.training.steps, "runs": found, "cores": os.cpu_count()}


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, help="keeps starts and finished measurements")
    chosen = parser.parse_args()
    params = changed(load_params("params.yaml", *chosen.params), training={"steps": chosen.steps})
    with tempfile.TemporaryDirectory() as name:
        result = compare(params, chosen.seeds, chosen.processes, (chosen.folder or Path(name)).resolve())
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
