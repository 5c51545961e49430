"""How long the default experiment takes: whole, per stage, and what orchestration costs.

    python -m benchmarks.pipeline [--params params/smoke.yaml]

Reproduces the experiment (``python -m tasks.reproduce``, what ``make run`` calls once everything is
installed) in a fresh clone of this repository, then again with nothing changed. A stage's own work is
what it reports itself; orchestration is all the rest: DVC, MLflow, the processes' start and imports
that no stage's work needs. The result holds the evaluation's headline figures too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_DONE = re.compile(r"^(\w+): done in ([0-9.]+) s$", re.MULTILINE)


def reproduce(folder: Path, options: list[str]) -> tuple[float, dict[str, float]]:
    """(seconds in all, seconds that each stage reports) of one reproduction."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    command = [sys.executable, "-m", "tasks.reproduce", *options]
    started = time.perf_counter()
    finished = subprocess.run(
        command, cwd=folder, env={**environment, "PYTHONPATH": str(folder)}, capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    if finished.returncode:
        raise SystemExit(finished.stdout[-2000:] + finished.stderr[-2000:])
    return seconds, {stage: float(own) for stage, own in _DONE.findall(finished.stdout)}


def measure(overlays: list[str]) -> dict[str, Any]:
    """Both reproductions, in a clone that is thrown away."""
    options = [word for overlay in overlays for word in ("--params", overlay)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "skillpress"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        first, stages = reproduce(folder, options)
        again, _ = reproduce(folder, options)
        (metrics,) = folder.rglob("results/metrics.json")
        (evaluation,) = folder.rglob("results/evaluation.json")
        figures = json.loads(metrics.read_text())
        comparisons = json.loads(evaluation.read_text())["comparisons"]
    own = sum(stages.values())
    return {
        "seconds": {"whole": first, "again, unchanged": again, "orchestration": first - own, **stages},
        "orchestration_share": (first - own) / first,
        "evaluation": figures,
        "comparisons": comparisons,
        "machine": {
            "python": platform.python_version(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        },
    }


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[])
    json.dump(measure(parser.parse_args().params), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
