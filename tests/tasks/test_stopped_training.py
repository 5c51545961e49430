"""Ctrl-C for a whole run while it trains.

Every test run has ``kill -9`` of a whole run at any moment (test_kills.py) and Ctrl-C of the stage that
trains (test_interruptions.py), so this one is thorough.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

from tests.support.clone import Clone
from tests.support.recorded import tracked

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

STEPS = 100
"""Enough steps that training still runs when the test sees its first checkpoint."""


@pytest.mark.kills
def test_a_run_stopped_while_training_goes_on_from_its_checkpoint(reproduced: Clone, tmp_path: Path) -> None:
    stopped = reproduced.copied(tmp_path)
    stopped.environment |= {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlruns/mlflow.db"}
    stopped.set_params({"training": {"steps": STEPS}})
    process = stopped.start("skillpress.pipeline.reproduce")
    wait_for_checkpoint(process, tmp_path / "checkpoints")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode != 0
    assert "interrupted" in output
    done = int(json.loads(next((tmp_path / "checkpoints").glob("*/latest.json")).read_text())["step"])
    assert 1 <= done < STEPS
    again = stopped.python("skillpress.pipeline.reproduce")
    assert again.returncode == 0, again.stdout + again.stderr
    assert stopped.ran(again.stdout) == ["train_policy", "evaluate_policy", "report"]
    curve = pl.read_csv(tmp_path / "results" / "training.csv")
    assert curve["step"].to_list() == list(range(1, STEPS + 1))
    client, runs = tracked(stopped)
    trainings = [run for run in runs if run.data.tags.get("dvc.stage") == "train_policy"]
    _, training = sorted(trainings, key=lambda run: run.info.start_time)  # the first is the copied clone's
    history = client.get_metric_history(training.info.run_id, "success")
    assert sorted(point.step for point in history) == list(range(1, STEPS + 1)), "in its own run, each once"


def wait_for_checkpoint(process: subprocess.Popen[str], checkpoints: Path) -> None:
    deadline = time.monotonic() + 300
    while not list(checkpoints.glob("*/latest.json")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "no checkpoint within five minutes"
        time.sleep(0.2)
