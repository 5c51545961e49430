"""Faults besides kills, in a real training of the small experiment.

The error says who did not answer, and the next start makes what an undisturbed run made, bit for bit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from skillpress.core.http_clients import open_directly
from skillpress.rollouts.workers.ranks import free_port
from tests.support.clone import Clone
from tests.support.jumping_clock import jumping_clock
from tests.support.kills import outputs

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.kills, pytest.mark.timeout(900)]

STEPS = [1, 2, 3, 4]
"""The training steps of the small experiment."""


@pytest.fixture
def clone(reproduced: Clone, tmp_path: Path) -> Clone:
    """The finished experiment with an MLflow database of its own, in which nothing is recorded."""
    (tmp_path / "lab").mkdir()
    copy = reproduced.copied(tmp_path / "lab")
    copy.environment |= {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/records/mlflow.db"}
    return copy


@contextmanager
def mlflow_server(clone: Clone, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """MLflow's server on the clone's database."""
    settings = {"HOST": "127.0.0.1", "MLFLOW_PORT": str(port)}
    command = [sys.executable, "-m", "flows.mlflow_server"]
    with subprocess.Popen(command, cwd=clone.folder, env=clone.environment | settings) as server:
        try:
            until = time.monotonic() + 120
            while not answers(port):
                assert server.poll() is None and time.monotonic() < until
                time.sleep(0.2)
            yield server
        finally:
            server.kill()


def answers(port: int) -> bool:
    try:
        with open_directly(f"http://127.0.0.1:{port}/health", 5.0):
            return True
    except OSError:
        return False


def trainings(clone: Clone) -> tuple[MlflowClient, list[Run]]:
    """A client, and the runs of train_policy in the clone's database."""
    client = MlflowClient(clone.environment["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name("skillpress")
    runs = client.search_runs([experiment.experiment_id]) if experiment else []
    return client, [run for run in runs if run.data.tags.get("dvc.stage") == "train_policy"]


def steps(clone: Clone) -> list[int]:
    """The steps in the record of the only training; MLflow lists them by the clock."""
    client, (run,) = trainings(clone)
    return sorted(point.step for point in client.get_metric_history(run.info.run_id, "success"))


def test_an_mlflow_that_dies_costs_no_step_and_no_record_of_one(clone: Clone, tmp_path: Path) -> None:
    before, port, said = outputs(clone.folder), free_port(), tmp_path / "said"
    database, address = clone.environment["MLFLOW_TRACKING_URI"], f"http://127.0.0.1:{port}"
    patience = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_TRACKING_URI": address}
    with said.open("w") as output:
        with mlflow_server(clone, port):
            clone.environment |= patience
            stage = clone.start("tasks", "train_policy", output=output)
            clone.environment["MLFLOW_TRACKING_URI"] = database
            until = time.monotonic() + 300
            while not trainings(clone)[1]:
                assert stage.poll() is None and time.monotonic() < until, said.read_text()
                time.sleep(0.2)
        stage.wait(300)
    told = said.read_text().splitlines()[-1]
    assert stage.returncode == 1
    assert "train_policy's run in MLflow: " in told and f"'127.0.0.1', port={port}" in told, told
    with mlflow_server(clone, port):
        again = clone.python("tasks", "train_policy", MLFLOW_TRACKING_URI=address)
    assert again.returncode == 0, again.stderr
    assert outputs(clone.folder) == before
    assert steps(clone) == STEPS


def test_a_clock_that_is_set_under_a_training_changes_no_result_and_no_duration(
    clone: Clone, tmp_path: Path
) -> None:
    before = outputs(clone.folder)
    with jumping_clock(tmp_path) as variables:
        done = clone.python("tasks", "train_policy", **variables)
    assert done.returncode == 0, done.stderr
    assert outputs(clone.folder) == before
    client, (run,) = trainings(clone)
    parent = client.get_run(run.data.tags["mlflow.parentRunId"])
    assert all(each.info.end_time >= each.info.start_time for each in (run, parent))
    assert 0 < run.data.metrics["seconds"] < 900
    assert steps(clone) == STEPS


READ_ONLY = [
    ("prepare_tasks", "data"),
    ("fit_dictionary", "results"),
    ("train_policy", "models"),
    ("train_policy", "checkpoints"),
    ("report", ".dvc/tmp"),
]


def test_outputs_that_are_read_only_are_one_line_and_the_next_run_goes_on(clone: Clone) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-Urm", "true"], check=False).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of his own")
    before = outputs(clone.folder)
    for stage, name in READ_ONLY:
        folder = str(clone.folder / name)
        os.makedirs(folder, exist_ok=True)
        inside = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$PWD" && exec "$@"'
        run = subprocess.run(
            [unshare, "-Urm", "sh", "-c", inside, folder, sys.executable, "-m", "tasks", stage],
            cwd=clone.folder, env=clone.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 2, f"{stage} with a read-only {name}: {run.stderr}"
        told = run.stderr.splitlines()[-1]
        assert "Traceback" not in run.stderr and name in told, run.stderr
        assert told.startswith(f"{stage}: ") and told.endswith(": Read-only file system"), told
    for stage, _ in READ_ONLY:
        again = clone.python("tasks", stage)
        assert again.returncode == 0, again.stdout + again.stderr
    assert outputs(clone.folder) == before, "and no unfinished work is left"
