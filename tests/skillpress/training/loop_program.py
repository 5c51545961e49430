"""Trains in a folder that ``prepare`` filled: ``loop_program.py FOLDER OUTPUT [PAUSE_AFTER]``.

Prints one line per step done. After step PAUSE_AFTER it waits to be killed, at the worst moment:
the step is reported and its checkpoint, due right after, may or may not be written.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

from skillpress.assembly import environment_of, starting_policy
from skillpress.environments.bundle import SplitSizes
from skillpress.params import Params, load_params
from skillpress.policy import save_policy
from skillpress.training.loop import TrainingJob, train
from skillpress.trajectory import write_tasks

ROOT = Path(__file__).parents[3]


def parameters(folder: Path) -> Params:
    """The smoke experiment, with what ``overlay.yaml`` in the folder changes."""
    return load_params(ROOT / "params.yaml", ROOT / "params" / "smoke.yaml", folder / "overlay.yaml")


def prepare(folder: Path, overlay: str) -> None:
    """Tasks, a fresh policy and the parameters."""
    (folder / "overlay.yaml").write_text(overlay)
    params = parameters(folder)
    bundle = environment_of(params)
    sizes = SplitSizes(64, 1, 1)
    tasks = [t for t in bundle.make_tasks(params.environment, sizes, params.seed) if t.split == "train"]
    write_tasks(folder / "train.parquet", tasks)
    save_policy(starting_policy(params), folder / "start")


def job(folder: Path, output: str) -> TrainingJob:
    """The training in this folder."""
    return TrainingJob(
        parameters(folder),
        folder / "train.parquet",
        folder / "start",
        folder / output,
        folder / f"checkpoints-{output}",
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    pause_after = int(sys.argv[3]) if len(sys.argv) > 3 else None

    def report(step: int, metrics: dict[str, float]) -> None:
        print(f"step {step} success {metrics['success']:.3f}", flush=True)
        if step == pause_after:
            time.sleep(600)

    curve = train(job(Path(sys.argv[1]), sys.argv[2]), report)
    print("curve", *(int(row["step"]) for row in curve), flush=True)
