"""Does Prefect's SQLite report "database is locked" while the schedule runs under full load?

    python -m benchmarks.scheduler_load [--minutes 10] [--revision 6127252]

It starts ``make schedule``'s services in a fresh clone of this repository, or of another revision for
comparison. The deployments run the smoke experiment, one per core, each with its own seed and due every few
seconds. A run that comes due while the previous one is running is cancelled, as in infra/prefect.yaml, so the
server schedules, starts, cancels and ends runs all the time. One process per core only keeps it busy. Prefect
hides some of these errors by default; here it logs every one. The result has the number of tracebacks, the
server's function that each came from, and the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request

import psutil
import yaml

from skillpress.core.http_clients import open_directly

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 300.0
STOP_SECONDS = 120.0
ANSWER_SECONDS = 300.0
"""A server with a locked database may not answer for minutes."""
LOG = Path(tempfile.gettempdir()) / "scheduler_load.log"
STATES = ("COMPLETED", "CANCELLED", "RUNNING", "FAILED", "CRASHED")
_LOCKED = "sqlite3.OperationalError: database is locked"
"""The end of a traceback's first part; the second repeats the message."""
_FRAME = re.compile(r'^\s+File ".*/prefect/(server/.*)\.py", line \d+, in (\w+)$')


def clone(folder: Path, revision: str, seconds_between: int) -> str:
    """A clone with deployments that are always due; returns its full revision."""
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    subprocess.run([*git, "checkout", "--quiet", revision], check=True)
    path = folder / "infra" / "prefect.yaml"
    content = yaml.safe_load(path.read_text())
    (nightly,) = (found for found in content["deployments"] if found["name"] == "nightly")
    content["deployments"] = [
        nightly
        | {
            "name": f"seed {seed}",
            "parameters": {"params": ["params/smoke.yaml"], "seed": seed},
            "schedules": [{"interval": seconds_between}],
        }
        for seed in range(len(os.sched_getaffinity(0)))
    ]
    path.write_text(yaml.safe_dump(content))
    described = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return described.stdout.strip()


@contextmanager
def busy_cores() -> Iterator[None]:
    """One process per core that only computes."""
    command = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@contextmanager
def services(folder: Path, log: Path, ports: tuple[int, int]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the services of ``make schedule`` with all output in a file; interrupt them at the end."""
    ours = ("MLFLOW_", "PREFECT_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {
        "PYTHONPATH": str(folder),
        "MLFLOW_PORT": str(ports[0]),
        "PREFECT_PORT": str(ports[1]),
        "PREFECT_SERVER_LOG_RETRYABLE_ERRORS": "true",
    }
    command = [sys.executable, "-m", "flows.services", "schedule"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def wait_for_schedule(process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the deployments are scheduled."""
    deadline = time.monotonic() + START_SECONDS
    while "deployments are scheduled" not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the services did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(1)


def locked(text: str) -> dict[str, Any]:
    """Number of such tracebacks in a log, and the last functions of Prefect's server in them."""
    lines = text.splitlines()
    origins: Counter[str] = Counter()
    for number, line in enumerate(lines):
        if line == _LOCKED:
            # The part after this one repeats the error as SQLAlchemy's; it names the server's functions.
            frames = (_FRAME.match(following) for following in lines[number + 1 : number + 200])
            inside = [f"{found[1]}:{found[2]}" for found in _until_next(frames, lines, number) if found]
            origins[inside[-1] if inside else "unknown"] += 1
    mentions = sum("database is locked" in line for line in lines)
    return {"tracebacks": origins.total(), "lines": mentions, "from": dict(origins.most_common())}


def _until_next(
    frames: Iterator[re.Match[str] | None], lines: list[str], number: int
) -> Iterator[re.Match[str] | None]:
    """The frames up to the second part of the traceback."""
    for following, frame in zip(lines[number + 1 :], frames, strict=False):
        if following.startswith("sqlalchemy.exc."):
            return
        yield frame


def runs(port: int) -> dict[str, int]:
    """Flow runs by state, as counted by the server."""
    found = {}
    for state in STATES:
        body = json.dumps({"flow_runs": {"state": {"type": {"any_": [state]}}}}).encode()
        request = Request(
            f"http://127.0.0.1:{port}/api/flow_runs/count", body, {"Content-Type": "application/json"}
        )
        with open_directly(request, ANSWER_SECONDS) as answer:
            found[state.lower()] = int(answer.read())
    return found


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(minutes: float, revision: str, seconds_between: int, log: Path) -> dict[str, Any]:
    """All results for one revision; the minutes begin when the deployments are scheduled."""
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "skillpress"
        full = clone(folder, revision, seconds_between)
        with busy_cores(), services(folder, log, ports) as process:
            wait_for_schedule(process, log)
            psutil.cpu_percent()
            ends = time.monotonic() + 60 * minutes
            while time.monotonic() < ends:
                if process.poll() is not None:
                    raise SystemExit(f"the services ended:\n{log.read_text(errors='replace')[-3000:]}")
                time.sleep(1)
            processor, load = psutil.cpu_percent() / 100, os.getloadavg()[1]
            counted = runs(ports[1])
            text = log.read_text(errors="replace")
    return {
        "revision": full,
        "minutes": minutes,
        "seconds_between_runs_of_a_deployment": seconds_between,
        "database_is_locked": locked(text),
        "errors_logged": sum("| ERROR " in line for line in text.splitlines()),
        "flow_runs": counted,
        "machine": {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": load,
            "processor_busy": processor,
        },
    }


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--revision", default="HEAD", help="a commit of this repository")
    parser.add_argument("--between", type=int, default=5, help="seconds between runs of a deployment")
    parser.add_argument("--log", type=Path, default=LOG, help="the services' output")
    chosen = parser.parse_args()
    result = measure(chosen.minutes, chosen.revision, chosen.between, chosen.log)
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
