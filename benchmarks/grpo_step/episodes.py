"""A training step of SmolLM2 on episodes with growing contexts: today's, an earlier revision's, and TRL's.

    python -m benchmarks.grpo_step.episodes [--before 4329270] [--dtype bfloat16] [--folder FOLDER]

The sides take turns, each in its own processes with one thread, on the same tasks from the same start: 8
groups of 8 episodes of four steps. Ours and the earlier revision's are the training itself
(``training_side.py``), with Countdown in words, prompts that extend one another, a KL term and one update per
step. Today's side sets two keys that the earlier one does not have: the KL is estimated on a share of the
sequences, and in bfloat16 attention is computed in blocks. TRL plays the same tasks (``trl_episodes.py``).
Times are processor seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.device import most_held
from benchmarks.grpo_step.comparison import WARM_UP
from benchmarks.grpo_step.setting import LEARNING_RATE, Place
from benchmarks.machine import machine
from benchmarks.revisions import ROOT, clone
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import write_tasks
from skillpress.core.yaml_files import write_yaml
from skillpress.environments.bundle import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.models.policy import save_policy

TODAY: dict[str, dict[str, dict[str, Any]]] = {
    "float32": {"algorithm": {"kl_share": 0.25}},
    "bfloat16": {"algorithm": {"kl_share": 0.25}, "policy": {"attention": "blocked"}},
}
"""Keys of today's side alone, by the weights' type; the share is that of the paper's overlays."""
TURNS = 2


def overlay(groups: int, steps: int, dtype: str) -> dict[str, Any]:
    """The experiment, with keys that revisions since 4329270 have: ``groups`` of 8 episodes of four steps."""
    return {
        "processes": 1,
        "environment": {"max_steps": 4, "max_numbers": 3},
        "tasks": {"train": 64, "validation": 0, "test": 8},
        "policy": {
            "model": "smollm2-135m", "rendering": "text", "state_update": "concatenate", "history": 4,
            "context_tokens": 1024, "dtype": dtype,
        },
        "imitation": {"demonstrations": 0},
        "sampling": {"max_new_tokens": 32, "slots": 64},
        "algorithm": {"kl_coefficient": 0.01},
        "training": {
            "steps": steps, "tasks_per_step": groups, "rollouts_per_task": 8, "minibatches": 1,
            "learning_rate": LEARNING_RATE, "microbatch_tokens": 1536, "mismatch_limit": 0.2,
            "deepspeed": "zero1_bf16" if dtype == "bfloat16" else "zero1_fp32", "checkpoint_every": 1000,
        },
    }  # fmt: skip


def params_of(changes: dict[str, Any]) -> Params:
    """The default experiment with these changes."""
    return check_params(merge(read_yaml(ROOT / "params.yaml"), changes), "benchmark")


def prepare(params: Params, folder: Path) -> None:
    """Write the tasks and the start policy, which all sides read."""
    if (folder / "start").is_dir():
        return
    experiment = Experiment(params)
    sizes = SplitSizes(params.tasks.train, 1, 1)
    made = experiment.bundle.make_tasks(params.environment, sizes, params.seed)
    write_tasks(folder / "train.parquet", [task for task in made if task.split == "train"])
    save_policy(experiment.starting_policy(), folder / "start")


def compare_episodes(before: str, groups: int, steps: int, place: Place, folder: Path) -> dict[str, Any]:
    """The comparison in its printed form.

    Args:
        before: the revision to compare with.
        steps: steps per process; the first warms up.
        folder: keeps the clone and finished turns, from which an interrupted run continues.
    """
    folder.mkdir(parents=True, exist_ok=True)
    then = overlay(groups, steps, place.dtype)
    prepare(params_of(then), folder)
    revision = clone(before, folder / "clone")
    write_yaml_file(folder / "before.yaml", then)
    write_yaml_file(folder / "skillpress.yaml", merge(then, TODAY[place.dtype]))
    load = os.getloadavg()[0]
    sides: dict[str, list[dict[str, Any]]] = {"skillpress": [], "before": [], "trl": []}
    for turn in range(TURNS):
        for side, found in sides.items():
            kept = folder / f"{side}-{turn}.json"
            if not kept.exists():
                write_json(kept, _measured(side, folder, place))
            found.append(read_json(kept))
    step = {side: statistics.median(_figures(found, "step")) for side, found in sides.items()}
    return {
        "before": revision,
        "steps": {side: len(_figures(found, "step")) for side, found in sides.items()},
        "seconds_per_step": step,
        "before_over_skillpress": step["before"] / step["skillpress"],
        "trl_over_skillpress": step["trl"] / step["skillpress"],
        "seconds_per_part": {
            side: {
                part: statistics.median(_figures(found, part))
                for part in found[0]["steps"][-1]
                if part not in ("step", "tokens")
            }
            for side, found in sides.items()
        },
        "sampled_tokens": {
            side: statistics.fmean(_figures(found, "tokens")) for side, found in sides.items()
        },
        "peak_bytes": {side: max(one["peak_bytes"] for one in found) for side, found in sides.items()},
        "seconds": {side: _figures(found, "step") for side, found in sides.items()},
        "setting": {**then, "today": TODAY[place.dtype], "threads": 1},
        "machine": machine(load),
    }


def write_yaml_file(path: Path, values: dict[str, Any]) -> None:
    path.write_text(write_yaml(values), encoding="utf-8")


def _figures(found: list[dict[str, Any]], name: str) -> list[float]:
    """A figure of every step that counts."""
    return [step[name] for one in found for step in one["steps"][WARM_UP:]]


def _measured(side: str, folder: Path, place: Place) -> dict[str, Any]:
    """What one process of a side printed."""
    here = folder / "clone" if side == "before" else ROOT
    if side == "trl":
        command = ["-m", "benchmarks.grpo_step.episodes", "--trl", "--folder", str(folder)]
        command += ["--dtype", place.dtype]
    else:
        script = Path(__file__).with_name("training_side.py")
        command = ["-P", str(script), str(folder / f"{side}.yaml"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(
        [sys.executable, *command], cwd=here, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return found


def trl_alone(folder: Path, place: Place) -> dict[str, Any]:
    """What TRL's process prints."""
    from benchmarks.grpo_step.trl_episodes import time_trl_episodes

    timed, tokens = time_trl_episodes(params_of(read_yaml(folder / "before.yaml")), folder, place)
    columns = zip(timed.step, timed.update, tokens, strict=True)
    steps = [{"step": step, "update": update, "tokens": count} for step, update, count in columns]
    return {"steps": steps, "peak_bytes": most_held(place.device), "load": os.getloadavg()[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", default="4329270", help="the revision to compare with")
    parser.add_argument("--groups", type=int, default=8, help="groups of 8 episodes")
    parser.add_argument("--steps", type=int, default=3, help="steps per process; the first warms up")
    parser.add_argument("--dtype", choices=[*TODAY], default="bfloat16")
    parser.add_argument("--folder", type=Path, help="keeps finished turns")
    parser.add_argument("--trl", action="store_true", help="what TRL's process is started with")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    place = Place(torch.device("cpu"), chosen.dtype)
    with tempfile.TemporaryDirectory() as name:
        folder = (chosen.folder or Path(name)).resolve()
        if chosen.trl:
            print(json.dumps(trl_alone(folder, place)))
        else:
            found = compare_episodes(chosen.before, chosen.groups, chosen.steps, place, folder)
            print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
