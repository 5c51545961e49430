"""The time of the default experiment on one process and on two: whole, per stage, and orchestration.

    python -m benchmarks.pipeline [--params params/smoke.yaml] [--processes 1 2] [--folder FOLDER]

For each number of processes it reproduces the experiment (``skillpress run``, which ``make run`` calls after
the installation) in a fresh clone of this repository, and then again without a change. A stage's own work is
the time that it reports itself. Orchestration is all the rest: DVC, MLflow, the start of processes and
imports that no stage's work needs. ``times_as_fast`` compares with the first number.

With ``--folder`` every finished measurement is kept there, and an interrupted run continues with the first
one that is missing. A single measurement is never resumed, since its time would be wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from skillpress.core.storage import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
_DONE = re.compile(r"^(\w+): done in ([0-9.]+) s$", re.MULTILINE)


def reproduce(folder: Path, options: list[str]) -> tuple[float, dict[str, float]]:
    """(total seconds, seconds that each stage reports) of one reproduction."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    command = [sys.executable, "-m", "skillpress.pipeline.reproduce", *options]
    started = time.perf_counter()
    finished = subprocess.run(
        command, cwd=folder, env={**environment, "PYTHONPATH": str(folder)}, capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    if finished.returncode:
        raise SystemExit(finished.stdout[-2000:] + finished.stderr[-2000:])
    stages = {stage: float(own) for stage, own in _DONE.findall(finished.stdout + finished.stderr)}
    return seconds, stages


def measure(overlays: Sequence[str], processes: int, folder: Path) -> dict[str, Any]:
    """Both reproductions, in a clone that is deleted afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    load = os.getloadavg()[0]
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    own_overlay = folder / "params" / f"processes_{processes}.yaml"
    own_overlay.write_text(yaml.safe_dump({"processes": processes}))
    relative = str(own_overlay.relative_to(folder))
    options = [word for overlay in (*overlays, relative) for word in ("--params", overlay)]
    first, stages = reproduce(folder, options)
    again, _ = reproduce(folder, options)
    (metrics,) = folder.rglob("results/metrics.json")
    (evaluation,) = folder.rglob("results/evaluation.json")
    (curve,) = folder.rglob("results/training.csv")
    own = sum(stages.values())
    result = {
        "seconds": {"whole": first, "again, unchanged": again, "orchestration": first - own, **stages},
        "orchestration_share": (first - own) / first,
        "seconds_per_training_step": per_step(curve),
        "evaluation": read_json(metrics),
        "comparisons": read_json(evaluation)["comparisons"],
        "load": {"before": load, "after": os.getloadavg()[0]},
    }
    shutil.rmtree(folder)
    return result


def per_step(curve: Path) -> dict[str, float]:
    """Mean seconds of a training step's parts, as measured by rank 0."""
    rows = pl.read_csv(curve, infer_schema_length=None)
    parts = [name for name in rows.columns if name.startswith("seconds/")]
    return {name.removeprefix("seconds/"): float(rows[name].mean()) for name in parts}  # type: ignore[arg-type]


def compare(overlays: Sequence[str], processes: Sequence[int], folder: Path) -> dict[str, Any]:
    """The measurements of all numbers of processes, including those kept in the folder."""
    key = {"overlays": list(overlays), "revision": revision()}
    found: dict[str, Any] = {}
    for number in processes:
        kept = folder / f"processes-{number}.json"
        if not kept.exists() or read_json(kept)["of"] != key:
            measured = measure(overlays, number, folder / f"processes-{number}")
            write_json(kept, {"of": key, **measured})
        found[str(number)] = {name: value for name, value in read_json(kept).items() if name != "of"}
    first = found[str(processes[0])]["seconds"]
    return {
        "processes": found,
        "times_as_fast": {
            number: {part: first[part] / seconds for part, seconds in measured["seconds"].items() if seconds}
            for number, measured in found.items()
        },
        "revision": key["revision"],
        "machine": {
            "python": platform.python_version(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
    }


def revision() -> str:
    """The commit that is cloned."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, help="keeps finished measurements")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        result = compare(chosen.params, chosen.processes, (chosen.folder or Path(name)).resolve())
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
