"""A training step of SmolLM2 on episodes with growing contexts: today's, an earlier revision's, and TRL's.

    python -m benchmarks.grpo_step.episodes [--before 4329270] [--dtype bfloat16] [--turns 2] [--sides ...]
        [--folder FOLDER]

The sides take turns, each in its own processes with one thread, on the same tasks from the same start: 8
groups of 8 episodes of four steps. Ours and the earlier revision's are the training itself
(``training_side.py``), with Countdown in words, prompts that extend one another, a KL term and one update per
step. Today's side sets two keys that the earlier one does not have: the KL is estimated on a share of the
sequences, and in bfloat16 attention is computed in blocks. TRL plays the same tasks (``trl_episodes.py``).
Times are processor seconds; a step begins with its first rollout, so none has the set-up in it, and each of
them counts. With ``--folder`` finished turns are kept there, and an interrupted run continues.
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
from benchmarks.grpo_step.setting import LEARNING_RATE, Place
from benchmarks.machine import machine
from benchmarks.revisions import ROOT, clone
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import write_tasks
from skillpress.core.yaml_files import write_yaml
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.models.policy import save_policy

Overlay = dict[str, Any]
TODAY: dict[str, Overlay] = {
    "float32": {"algorithm": {"kl_share": 0.25}},
    "bfloat16": {"algorithm": {"kl_share": 0.25}, "policy": {"attention": "blocked"}},
}
"""Keys of today's side alone, by the weights' type; the share is that of the paper's overlays."""
SIDES = ("skillpress", "before", "trl")
PARTS = ("rollout", "reference", "comparison", "update")
"""Parts of a step of ours."""


def overlay(groups: int, steps: int, dtype: str) -> Overlay:
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


def params_of(changes: Overlay) -> Params:
    """The default experiment with these changes."""
    return check_params(merge(read_yaml(ROOT / "params.yaml"), changes), "benchmark")


def prepare(params: Params, folder: Path) -> None:
    """Write the tasks and the start policy, which all sides read."""
    if (folder / "start").is_dir():
        return
    experiment = Experiment(params)
    sizes = SplitSizes(params.tasks.train, 1, 1)
    made = params.environment.checked_tasks(sizes, params.seed)
    write_tasks(folder / "train.parquet", [task for task in made if task.split == "train"])
    save_policy(experiment.starting_policy(), folder / "start")


def compare_episodes(
    before: str, overlays: dict[str, Overlay], then: Overlay, turns: int, place: Place, folder: Path
) -> dict[str, Any]:
    """The comparison in its printed form.

    Args:
        before: the revision to compare with.
        overlays: the experiments of the sides to measure.
        then: the earlier revision's, whether it is measured or not.
        turns: processes per side.
        folder: keeps the clone and finished turns, from which an interrupted run continues.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prepare(params_of(then), folder)
    revision, load = clone(before, folder / "clone"), os.getloadavg()[0]
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in overlays}
    for turn in range(turns):
        for side, changes in overlays.items():
            kept = folder / f"{side}-{turn}.json"
            if not kept.exists():
                (folder / f"{side}.yaml").write_text(write_yaml(changes), encoding="utf-8")
                write_json(kept, _measured(side, folder, place))
            found[side].append(read_json(kept))
    return {
        "before": revision,
        **summary(found),
        "setting": {**then, "today": TODAY[place.dtype], "threads": 1},
        "machine": machine(load),
    }


def summary(found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians over the steps of each side, the ratios of the others' steps to ours, and every step."""
    steps = {side: [step for one in turns for step in one["steps"]] for side, turns in found.items()}
    medians = {
        side: {part: statistics.median(step[part] for step in some) for part in some[0]}
        for side, some in steps.items()
    }
    ours = medians["skillpress"]["step"]
    return {
        "ratios": {
            f"{side} over skillpress": some["step"] / ours
            for side, some in medians.items()
            if side != "skillpress"
        },
        "shares_of_step": {
            side: {part: some[part] / some["step"] for part in PARTS if part in some}
            for side, some in medians.items()
        },
        "medians": medians,
        "peak_bytes": {side: max(one["peak_bytes"] for one in turns) for side, turns in found.items()},
        "steps": steps,
        "loads": {side: [one["load"] for one in turns] for side, turns in found.items()},
    }


def _measured(side: str, folder: Path, place: Place) -> dict[str, Any]:
    """What one process of a side printed."""
    here, overlay_file = folder / "clone" if side == "before" else ROOT, str(folder / f"{side}.yaml")
    if side == "trl":
        command = ["-m", "benchmarks.grpo_step.episodes", "--dtype", place.dtype, "--folder", str(folder)]
        command += ["--trl", overlay_file]
    else:
        script = Path(__file__).with_name("training_side.py")
        command = ["-P", str(script), overlay_file, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(
        [sys.executable, *command], cwd=here, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return found


def trl_alone(params: Params, folder: Path, place: Place) -> dict[str, Any]:
    """What TRL's process prints."""
    from benchmarks.grpo_step.trl_episodes import time_trl_episodes

    timed, tokens = time_trl_episodes(params, folder, place)
    columns = zip(timed.step, timed.update, tokens, strict=True)
    steps = [{"step": step, "update": update, "tokens": count} for step, update, count in columns]
    return {"steps": steps, "peak_bytes": most_held(place.device), "load": os.getloadavg()[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", default="4329270", help="the revision to compare with")
    parser.add_argument("--groups", type=int, default=8, help="groups of 8 episodes")
    parser.add_argument("--steps", type=int, default=1, help="steps per process")
    parser.add_argument("--turns", type=int, default=2, help="processes per side")
    parser.add_argument(
        "--sides", nargs="+", choices=SIDES, default=[*SIDES], help="skillpress must be there"
    )
    parser.add_argument("--dtype", choices=[*TODAY], default="bfloat16")
    parser.add_argument("--folder", type=Path, help="keeps finished turns")
    parser.add_argument("--trl", type=Path, help="the experiment that TRL's process is started with")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["DS_ACCELERATOR"] = "cpu"  # DeepSpeed would say on stdout that it finds no GPU
    torch.set_num_threads(1)
    place = Place(torch.device("cpu"), chosen.dtype)
    then = overlay(chosen.groups, chosen.steps, chosen.dtype)
    now = merge(then, TODAY[chosen.dtype])
    overlays = {side: now if side == "skillpress" else then for side in SIDES if side in chosen.sides}
    with tempfile.TemporaryDirectory() as name:
        folder = (chosen.folder or Path(name)).resolve()
        if chosen.trl:
            print(json.dumps(trl_alone(params_of(read_yaml(chosen.trl)), folder, place)))
        else:
            found = compare_episodes(chosen.before, overlays, then, chosen.turns, place, folder)
            print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
