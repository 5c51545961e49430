"""What one policy learns in minutes: a short imitation, and then ``grpo`` and ``segcost`` from that start.

    python -m benchmarks.gpu.learning imitate --params OVERLAY --folder FOLDER
    python -m benchmarks.gpu.learning train --params OVERLAY --folder FOLDER --seconds 200

``imitate`` makes the tasks and the start. ``train`` plays the test tasks with the start, trains both methods
from it with the same seed, and plays the test tasks with both results. ``grpo`` trains as many steps as fit
into ``--seconds``, at most ``training.steps``; ``segcost`` trains the same number. Finished results are kept
in the folder, and a killed training goes on from its last checkpoint. With one seed the intervals are over
tasks alone: they say nothing about other trainings.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks.methods import (
    FIGURES,
    ROOT,
    Rows,
    SpentError,
    Variant,
    changed,
    estimate,
    less,
    prepare,
    scores,
)
from skillpress.core.storage import read_json, write_json
from skillpress.experiment.params import Params, load_params, read_yaml
from skillpress.experiment.training import train

METHODS = ("grpo", "segcost")
LOGGED = ("success", "episode_length", "gradient_norm", "clip_fraction", "entropy", "mismatch/mean")
"""Columns of a training's curve that the result has, where they are there."""
SHARES = ("time_share/", "seconds/")
"""Beginnings of the names of columns whose means the result has."""

Curve = list[dict[str, float]]


def imitate(params: Params, folder: Path) -> dict[str, Any]:
    """Make the tasks and the start."""
    began = time.perf_counter()
    prepare(params, folder)
    return {"seconds": time.perf_counter() - began, "demonstrations": params.imitation.demonstrations}


def variant(params: Params, name: str, folder: Path) -> Variant:
    """The training by a method, whose overlay comes over the experiment."""
    return Variant(name, 1.0, changed(params, read_yaml(ROOT / "params" / f"{name}.yaml")), folder)


def learned(run: Variant, steps: int, seconds: float | None) -> Curve:
    """A training's curve.

    Args:
        steps: training steps, at most.
        seconds: training ends at the last checkpoint that comes before the end of this time; None: no limit.
    """
    until = None if seconds is None else time.monotonic() + seconds
    reached, every = 0, run.params.training.checkpoint_every

    def report(step: int, metrics: Mapping[str, float]) -> None:
        nonlocal reached
        reached = step
        if until is not None and time.monotonic() > until:
            raise SpentError

    with suppress(SpentError):
        return train(run.with_steps(steps), report)
    # The step that was reached is reported before its own checkpoint is written.
    return train(run.with_steps(max(every, (reached - 1) // every * every)))


def kept(path: Path, work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of the work, which runs here; it is read if it was done before.

    ``methods.kept`` starts a process for each work. Starting them would take a tenth of the part's time.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, work(*arguments))
        gc.collect()
        torch.cuda.empty_cache()  # the next training has an engine of its own
    return read_json(path)


def compare(params: Params, folder: Path, seconds: float) -> dict[str, Any]:
    """Both methods beside their start, on the test tasks."""
    tasks = folder / "test.parquet"
    start: Rows = kept(folder / "start-test.json", scores, params, folder / "start", tasks, folder / "first")
    steps = params.training.steps
    limit: float | None = seconds
    tests: dict[str, Rows] = {}
    found: dict[str, Any] = {"start": {figure: estimate([start], figure) for figure in FIGURES}}
    for name in METHODS:
        run = variant(params, name, folder)
        curve: Curve = kept(run.folder / "curve.json", learned, run, steps, limit)
        steps, limit = len(curve), None
        policy = run.folder / "policy"
        tests[name] = kept(run.folder / "test.json", scores, run.params, policy, tasks, run.folder)
        found[name] = {
            **{figure: estimate([tests[name]], figure) for figure in FIGURES},
            "less_start": {figure: estimate(less([tests[name]], [start]), figure) for figure in FIGURES},
            **described(curve),
        }
    apart = less([tests["segcost"]], [tests["grpo"]])
    return {**found, "segcost_less_grpo": {figure: estimate(apart, figure) for figure in FIGURES}}


def described(curve: Curve) -> dict[str, Any]:
    """A curve's columns, and the means of its times without the first step."""
    names = [name for name in curve[-1] if name.startswith(SHARES)]
    later = curve[1:] or curve
    return {
        "training_steps": len(curve),
        "environment_steps": sum(row["environment_steps"] for row in curve),
        "curve": {name: [row[name] for row in curve] for name in LOGGED if all(name in row for row in curve)},
        "means": {name: statistics.fmean(row.get(name, 0.0) for row in later) for name in names},
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("imitate", "train"))
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--folder", type=Path, required=True, help="has a folder for the seed")
    parser.add_argument("--seconds", type=float, help="of grpo's training")
    chosen = parser.parse_args()
    if chosen.what == "train" and chosen.seconds is None:
        parser.error("train needs --seconds")
    params = load_params("params.yaml", *chosen.params)
    folder = (chosen.folder / f"seed-{params.seed}").resolve()
    result = imitate(params, folder) if chosen.what == "imitate" else compare(params, folder, chosen.seconds)
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
