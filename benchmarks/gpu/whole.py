"""A training to its end: killed once and resumed, beside one that is left alone, with lag 0 and 1.

    python -m benchmarks.gpu.whole --params benchmarks/gpu/whole.yaml --folder FOLDER [--lags 0 1]

A policy made from scratch imitates demonstrations of Countdown and learns by the experiment's algorithm. Each
training has a process of its own. One is killed (``kill -9``) once ``--killed`` steps are finished, and
started again; the other runs undisturbed. The result has their curves, and whether both policies have the
same bytes. Finished trainings in the folder are not run again. Prints JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.device import device_name
from benchmarks.lag import changed, prepare
from skillpress.core.storage import read_json, write_json
from skillpress.experiment.params import Params, load_params
from skillpress.experiment.training import job_in, train

STEP = "step "
"""Begins a line of a training's process that a step is finished."""


def run(params: Params, folder: Path, own: Path) -> None:
    """One training, from its last checkpoint if there is one; its curve is left in its folder."""
    own.mkdir(exist_ok=True)
    job = job_in(own, params, folder)
    curve = train(job, lambda step, metrics: print(f"{STEP}{step}", flush=True))
    write_json(own / "curve.json", [{"success": row["success"]} for row in curve])
    digest = hashlib.sha256()
    for file in sorted(job.output.glob("*.safetensors")):
        digest.update(file.read_bytes())
    write_json(own / "done.json", {"steps": len(curve), "digest": digest.hexdigest()[:16]})


def finished(command: list[str], killed: int | None) -> list[float]:
    """Seconds at which the steps of a process were finished; it is killed after one of them, or awaited."""
    began, ends = time.perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(STEP):
                ends.append(round(time.perf_counter() - began, 2))
                if killed is not None and int(line.removeprefix(STEP)) >= killed:
                    os.killpg(process.pid, signal.SIGKILL)
                    break
    if killed is None and process.returncode:
        raise SystemExit(f"a training ended with {process.returncode}")
    return ends


def trained(chosen: argparse.Namespace, folder: Path, lag: int, disturbed: bool) -> dict[str, Any]:
    """One training, which may be killed once."""
    own = folder / f"lag-{lag}-{'killed' if disturbed else 'alone'}"
    command = [sys.executable, "-m", "benchmarks.gpu.whole", "--train", own.name, "--lags", str(lag)]
    command += ["--folder", str(folder.parent), "--params", chosen.params]
    ends: list[list[float]] = []
    if not (own / "done.json").exists():
        for killed in (chosen.killed, None) if disturbed else (None,):
            ends.append(finished(command, killed))
        write_json(own / "ends.json", ends)
    ends = read_json(own / "ends.json")
    return {
        **read_json(own / "done.json"),
        "steps_of_each_process": [len(each) for each in ends],
        "success": [row["success"] for row in read_json(own / "curve.json")],
        "seconds_of_steps": ends,
    }


def main() -> None:
    """Print the result as JSON, or make one training in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", required=True, help="an overlay over params.yaml")
    parser.add_argument("--folder", type=Path, required=True, help="keeps the start and what is finished")
    parser.add_argument("--lags", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--killed", type=int, default=3, help="finished steps at the kill")
    parser.add_argument("--train", help="the folder of the one training to make here")
    chosen = parser.parse_args()
    params = load_params("params.yaml", chosen.params)
    folder = (chosen.folder / f"seed-{params.seed}").resolve()
    if chosen.train:
        run(changed(params, training={"lag": chosen.lags[0]}), folder, folder / chosen.train)
        return
    began = time.perf_counter()
    prepare(params, folder)
    imitation = time.perf_counter() - began
    found: dict[str, Any] = {}
    for lag in chosen.lags:
        killed, alone = (trained(chosen, folder, lag, disturbed) for disturbed in (True, False))
        same = killed["digest"] == alone["digest"]
        found[f"lag {lag}"] = {"killed_and_resumed": killed, "undisturbed": alone, "equal_bytes": same}
    ended = (
        f"{name}: {runs['killed_and_resumed']['steps']} steps, in processes of "
        f"{' and '.join(map(str, runs['killed_and_resumed']['steps_of_each_process']))}; success "
        f"{runs['killed_and_resumed']['success'][0]:.2f} to {runs['killed_and_resumed']['success'][-1]:.2f}, "
        f"{'the same' if runs['equal_bytes'] else 'other'} bytes as undisturbed"
        for name, runs in found.items()
    )
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(json.dumps({
        "summary": "; ".join(ended),
        "imitation_seconds": round(imitation, 1),
        "runs": found,
        "setting": {"params": chosen.params, "device": device_name(place), "torch": torch.__version__},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
