"""``make ui`` and ``make schedule``: what is told apart before anything is started."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from clone import Clone


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("taken", ["MLFLOW_PORT", "PREFECT_PORT"])
def test_a_port_in_use_is_one_clear_message_and_nothing_is_started(taken: str, repository: Path) -> None:
    ports = {name: str(free_port()) for name in ("MLFLOW_PORT", "PREFECT_PORT")}
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ports[taken] = str(other.getsockname()[1])
        ui = subprocess.run(
            [sys.executable, "-m", "flows.services", "ui"],
            cwd=repository, env=os.environ | ports, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert ui.returncode == 2
    assert ui.stdout == ""
    (message,) = ui.stderr.strip().splitlines()
    assert f"127.0.0.1:{ports[taken]} cannot be used (Address already in use)" in message
    assert f"{taken}=<port>" in message


@pytest.mark.slow
def test_a_schedule_really_runs_and_everything_ends_with_it(repository: Path, tmp_path: Path) -> None:
    clone = Clone(repository, tmp_path)
    deployments = clone.folder / "infra" / "prefect.yaml"
    deployments.write_text(deployments.read_text().replace('cron: "0 2 * * *"', 'cron: "* * * * *"'))
    mlflow, prefect = free_port(), free_port()
    clone.environment |= {"MLFLOW_PORT": str(mlflow), "PREFECT_PORT": str(prefect)}
    log = tmp_path / "services.log"
    report = clone.folder / "results" / "report.html"
    with log.open("w") as output:
        services = clone.start("flows.services", "schedule", output=output)
    try:
        deadline = time.monotonic() + 500
        while not report.exists():
            assert services.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "no scheduled run has finished: " + log.read_text()
            time.sleep(1)
        for port in (mlflow, prefect):
            with urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
                assert page.status == 200
    finally:
        os.killpg(services.pid, signal.SIGINT)
        services.wait(timeout=120)
    assert services.returncode == 0, log.read_text()
    for port in (mlflow, prefect):
        with pytest.raises(OSError, match="refused"), urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            pass
