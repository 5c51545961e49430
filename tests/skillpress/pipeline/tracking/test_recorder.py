import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from skillpress.experiment.params import load_params
from skillpress.pipeline.reproduce.lock import exclusive
from skillpress.pipeline.tracking.recorder import REPORTS, Recorder, TrackingError
from skillpress.pipeline.tracking.runs import create_database

STAGE = """
import sys, time
from skillpress.experiment.params import load_params
from skillpress.pipeline.tracking.recorder import Recorder
run = Recorder("train_policy", load_params(), "key")
for step in range(1, 6):
    run.log_metrics({"reward": float(step)}, step)
print(run.run_id, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment folder with its own tracking database."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    create_database()
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text((repository / "params.yaml").read_text())


def test_all_that_a_stage_said_is_recorded_when_it_finishes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>found</p>")
    run = Recorder("train_policy", load_params(), "key")
    run.log_metrics({"reward": 1.0, "loss": float("nan")}, 1)
    run.log_metrics({"reward": 2.0}, 2)
    run.log_summary({"trained/pass_at_1": 0.5})
    run.log_file(page)
    run.finish("FINISHED")
    client = MlflowClient()
    found = client.get_run(run.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["reward"] == 2.0 and found.data.metrics["trained/pass_at_1"] == 0.5
    assert [point.step for point in client.get_metric_history(run.run_id, "reward")] == [1, 2]
    assert [item.path for item in client.list_artifacts(run.run_id)] == ["page.html"]


@pytest.mark.kills
def test_what_a_killed_stage_said_is_recorded_and_its_run_stays_open(repository: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    with subprocess.Popen(
        [sys.executable, "-c", STAGE], env=environment, stdout=subprocess.PIPE, text=True
    ) as stage:
        assert stage.stdout is not None
        run_id = stage.stdout.readline().strip()
        stage.send_signal(signal.SIGKILL)
    client = MlflowClient()
    deadline = time.monotonic() + 60
    while client.get_run(run_id).data.metrics.get("reward") != 5.0 and time.monotonic() < deadline:
        time.sleep(0.1)
    found = client.get_run(run_id)
    assert found.data.metrics["reward"] == 5.0 and found.info.status == "RUNNING"


def test_a_database_that_cannot_be_opened_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{broken}")
    run = Recorder("train_policy", load_params(), "key")
    with pytest.raises(TrackingError, match=r"train_policy's run in MLflow: .*is not an SQLite database"):
        run.finish("FINISHED")


def test_a_stage_learns_that_nothing_is_recorded_before_its_work_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{broken}")
    run = Recorder("prepare_tasks", load_params(), "key")
    deadline = time.monotonic() + 60
    with pytest.raises(TrackingError, match="prepare_tasks's run in MLflow"):
        while time.monotonic() < deadline:
            run.check()
            time.sleep(0.1)


LOCKED = """
import os, sys, time
from pathlib import Path
from skillpress.experiment.params import load_params
from skillpress.pipeline.reproduce.lock import exclusive
from skillpress.pipeline.tracking.recorder import Recorder
with exclusive(Path("stage.lock"), "the stage") as lock:
    run = Recorder("train_policy", load_params(), "key", lock)
    for step in range(1, 301):
        run.log_metrics({"reward": float(step)}, step)
    print(run.run_id, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_the_lock_of_a_killed_stage_is_free_when_all_that_it_said_is_recorded(repository: Path) -> None:
    """Otherwise its successor would read the run's last step too early, and log steps twice."""
    killed = subprocess.run(
        [sys.executable, "-c", LOCKED], env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    with exclusive(Path("stage.lock"), "the stage", wait_seconds=120):
        history = MlflowClient().get_metric_history(killed.stdout.strip(), "reward")
    assert [point.step for point in history] == list(range(1, 301))


def test_a_successor_records_what_its_predecessors_mlflow_could_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has ended, and the stage was killed within a line. Another key has nothing to record."""
    there = os.environ["MLFLOW_TRACKING_URI"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    first = Recorder("train_policy", load_params(), "key")
    for step in (1, 2, 3):
        first.log_metrics({"reward": step / 10}, step)
    with pytest.raises(TrackingError, match=r"train_policy's run in MLflow: .*127\.0\.0\.1"):
        first.finish("FINISHED")
    with (tmp_path / REPORTS / "train_policy.reports").open("a") as kept:
        kept.write('{"metrics": {"rew')
    monkeypatch.setenv("MLFLOW_TRACKING_URI", there)
    for key, steps in (("key", [1, 2, 3, 4]), ("other", [4])):
        run = Recorder("train_policy", load_params(), key)
        run.log_metrics({"reward": 0.4}, 4)
        run.finish("FINISHED")
        history = MlflowClient().get_metric_history(run.run_id, "reward")
        assert [(point.step, point.value) for point in history] == [(step, step / 10) for step in steps]
    assert not (tmp_path / REPORTS / "train_policy.reports").exists()
