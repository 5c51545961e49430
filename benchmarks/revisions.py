"""Processor time of the pipeline and of a GRPO step at two revisions of this repository.

    python -m benchmarks.revisions BEFORE [--after HEAD] [--turns 3] [--folder FOLDER]

Both revisions are cloned and take turns (before, after, before, after ...), so that a change in what else the
machine does hits both. A turn runs, in the clone and on one thread,

- ``benchmarks.pipeline`` with one process: the whole experiment of the overlays, from an empty folder, and
  then again without a change;
- ``benchmarks.grpo_step`` with the default policy, our side and TRL's. TRL's code is the same at both
  revisions, so its ratio shows how far the machine alone moves a figure.

Processor seconds are user plus system time of a command and of all its child processes. On a shared machine
wall-clock time says little, but stages and steps report no other. With ``--folder`` finished turns are
kept there, and an interrupted run continues with the first one that is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skillpress.core.storage import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("before", "after")


def clone(revision: str, folder: Path) -> str:
    """A clone at the revision; returns the full name of its commit."""
    git = ["git", "-C", str(folder)]
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder)], check=True)
        subprocess.run([*git, "checkout", "--quiet", "--detach", revision], check=True)
    named = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return named.stdout.strip()


def run(repository: Path, module: str, options: Sequence[str]) -> dict[str, Any]:
    """One benchmark in a clone.

    Returns:
        ``processor_seconds`` of the command and its children, and ``figures``, the JSON that it printed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *options],
        cwd=repository, env={**environment, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime - started.ru_utime + ended.ru_stime - started.ru_stime
    printed = done.stdout[done.stdout.index("{") :]  # DeepSpeed logs to stdout before
    return {"processor_seconds": seconds, "figures": json.loads(printed)}


def pipeline(repository: Path, overlays: Sequence[Path]) -> dict[str, float]:
    """Seconds of the pipeline: of the processor, and those that its stages and steps report (wall-clock)."""
    options = [word for overlay in overlays for word in ("--params", str(overlay.resolve()))]
    found = run(repository, "pipeline", [*options, "--processes", "1"])
    measured = found["figures"]["processes"]["1"]
    return {
        "processor": found["processor_seconds"],
        **{f"stage {name}": seconds for name, seconds in measured["seconds"].items()},
        **{
            f"training step, {name}": seconds
            for name, seconds in measured["seconds_per_training_step"].items()
        },
    }


def grpo_step(repository: Path, steps: int) -> dict[str, float]:
    """Processor seconds of a step and of its update, of both sides, and the peak memory in bytes."""
    found = run(repository, "grpo_step", ["--steps", str(steps)])
    figures = found["figures"]
    return {
        "processor": found["processor_seconds"],
        **{f"step, {side}": seconds for side, seconds in figures["seconds_per_step"].items()},
        **{f"update, {side}": seconds for side, seconds in figures["seconds_per_update"].items()},
        **{f"peak bytes, {side}": held for side, held in figures["peak_bytes"].items()},
    }


def turns(
    name: str, measure: Callable[[Path], dict[str, float]], number: int, clones: dict[str, Path], kept: Path
) -> dict[str, Any]:
    """The measurements of both revisions in turn.

    Returns:
        for each figure the median and the values of both revisions, and the ratio of the medians,
        after over before.
    """
    found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for turn in range(number):
        for side in SIDES:
            file = kept / f"{name}-{turn}-{side}.json"
            if not file.exists():
                write_json(file, measure(clones[side]))
            found[side].append(read_json(file))
    result = {}
    for figure in found["after"][0]:
        values = {side: [one[figure] for one in ones if figure in one] for side, ones in found.items()}
        if all(values.values()):
            medians = {side: statistics.median(ones) for side, ones in values.items()}
            ratio = medians["after"] / medians["before"] if medians["before"] else None
            result[figure] = {"median": medians, "after_over_before": ratio, "values": values}
    return result


def compare(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The comparison in its printed form."""
    folder.mkdir(parents=True, exist_ok=True)
    clones = {side: folder / side for side in SIDES}
    revisions = {side: clone(getattr(chosen, side), clones[side]) for side in SIDES}
    load = os.getloadavg()[0]
    return {
        "revisions": revisions,
        "turns": chosen.turns,
        "pipeline": {
            "overlays": {overlay.name: overlay.read_text(encoding="utf-8") for overlay in chosen.params},
            **turns("pipeline", lambda place: pipeline(place, chosen.params), chosen.turns, clones, folder),
        },
        "grpo_step": turns(
            "grpo_step", lambda place: grpo_step(place, chosen.steps), chosen.turns, clones, folder
        ),
        "machine": {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": {"before": load, "after": os.getloadavg()[0]},
        },
    }


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", help="a revision of this repository, such as a commit")
    parser.add_argument("--after", default="HEAD", help="the revision that it is compared with")
    parser.add_argument("--turns", type=int, default=3, help="measurements of each revision")
    parser.add_argument("--steps", type=int, default=8, help="of grpo_step, per process")
    parser.add_argument(
        "--params", type=Path, action="append", help="overlays of the pipeline; may be repeated"
    )
    parser.add_argument("--folder", type=Path, help="keeps the clones and finished turns")
    chosen = parser.parse_args()
    chosen.params = chosen.params or [Path(__file__).with_suffix(".yaml")]
    with tempfile.TemporaryDirectory() as name:
        result = compare(chosen, (chosen.folder or Path(name)).resolve())
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
