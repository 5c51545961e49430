"""An ablation over machines that share only a DVC remote, an MLflow server and a revision."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from mlflow import MlflowClient

from skillpress.rollouts.workers.ranks import free_port
from tests.support.clone import Clone

GRPO, SEGCOST = ("--params", "params/grpo.yaml"), ("--params", "params/segcost.yaml")
OF_METHOD = ["train_policy", "evaluate_policy", "report"]
"""The stages that methods of one seed do not share."""

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(1800)]


@pytest.fixture
def head(repository: Path, tmp_path: Path) -> Clone:
    return Clone(repository, tmp_path / "head")


@pytest.fixture
def tracking(head: Clone, tmp_path: Path) -> Iterator[str]:
    """MLflow's server, which also stores the artifacts; yields its address."""
    store = ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db"]
    kept = ["--artifacts-destination", str(tmp_path / "artifacts"), "--workers", "1"]
    port = str(free_port())
    head.environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    with (tmp_path / "server.log").open("w") as log:
        server = head.start("mlflow", "server", "--port", port, *store, *kept, output=log)
    try:
        wait_until(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def test_only_what_no_machine_has_done_is_run(
    head: Clone, reproduced: Clone, tracking: str, tmp_path: Path
) -> None:
    remote = ("--remote", str(tmp_path / "remote"))
    left = head.cloned(tmp_path / "left")
    shutil.copytree(reproduced.folder / ".dvc" / "cache", left.folder / ".dvc" / "cache")
    done = left.python(
        "skillpress.pipeline.reproduce", *GRPO, "--seed", "0", *remote, MLFLOW_TRACKING_URI=tracking
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert left.ran(done.stdout) == OF_METHOD, "the others were done there before"

    run = head.python(
        "flows.ablation", *GRPO, *SEGCOST, "--seeds", "0", *remote, MLFLOW_TRACKING_URI=tracking
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert ran(head, "grpo-seed0") == [], "all of it was done on the left machine"
    assert ran(head, "segcost-seed0") == OF_METHOD
    assert (head.folder / "results" / "ablation.html").exists()

    client = MlflowClient(tracking)
    (experiment,) = client.search_experiments(filter_string="name = 'skillpress'")
    runs = client.search_runs([experiment.experiment_id], "tags.level = 'stage'")
    trained = [found for found in runs if found.data.tags["dvc.stage"] == "train_policy"]
    assert len(trained) == 2, "one by each machine, in one place"


def ran(clone: Clone, workspace: str) -> list[str]:
    """The stages that ran in a workspace, from its log."""
    return clone.ran((clone.folder / "workspaces" / f"{workspace}.log").read_text())


def wait_until(url: str, server: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            urlopen(url, timeout=5).close()
            return
        except (URLError, ConnectionError, TimeoutError):
            assert server.poll() is None, f"the server ended with exit code {server.returncode}"
            assert time.monotonic() < deadline, f"nobody answers at {url}"
            time.sleep(0.5)
