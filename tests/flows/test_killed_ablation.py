"""An ablation that is killed goes on; two clones may share one MLflow database and one DVC cache."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.support.clone import Clone
from tests.support.kills import outputs

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.kills, pytest.mark.timeout(1800)]

TINY = {
    "processes": 1,
    "tasks": {"train": 64, "validation": 8, "test": 16},
    "imitation": {"demonstrations": 300},
    "training": {"steps": 2},
    "rollouts": {"tasks": 4},
}
METHODS = (
    "flows.ablation",
    "--params",
    "params/grpo.yaml",
    "--params",
    "params/segcost.yaml",
    "--seeds",
    "0",
)
RUNNING = "Running stage 'train_policy'"


@pytest.fixture(scope="module")
def clone(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    clone = Clone(repository, tmp_path_factory.mktemp("tiny") / "clone")
    clone.set_params(TINY)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run([*git, "commit", "--quiet", "--all", "--message", "tiny"], cwd=clone.folder, check=True)
    return clone


def log(clone: Clone, method: str) -> str:
    path = clone.folder / "workspaces" / f"{method}-seed0.log"
    return path.read_text() if path.exists() else ""


def compared(clone: Clone) -> bytes:
    """The ablation's rows and tests."""
    return (clone.folder / "results" / "ablation.json").read_bytes()


def test_a_killed_ablation_repeats_no_finished_member_and_ends_as_an_undisturbed_one(
    clone: Clone, tmp_path: Path
) -> None:
    undisturbed = clone.cloned(tmp_path / "undisturbed")
    whole = undisturbed.python(*METHODS)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    said = tmp_path / "said"
    with said.open("w") as output:
        first = clone.start(*METHODS, output=output)
        until = time.monotonic() + 900
        while RUNNING not in log(clone, "segcost"):
            assert first.poll() is None and time.monotonic() < until, said.read_text()
            time.sleep(0.1)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert log(clone, "grpo").count(RUNNING) == 1 and not (clone.folder / "results/ablation.json").exists()
    again = clone.python(*METHODS)
    assert again.returncode == 0, again.stdout + again.stderr
    assert log(clone, "grpo").count(RUNNING) == 1, "the finished member was not trained again"
    assert compared(clone) == compared(undisturbed)


def test_two_clones_share_a_database_and_a_cache_at_the_same_time(clone: Clone, tmp_path: Path) -> None:
    pair = [clone.cloned(tmp_path / name) for name in ("one", "other")]
    for each in pair:
        each.environment |= {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/records/mlflow.db"}
        done = each.python("dvc", "cache", "dir", str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr
    files = [tmp_path / f"{number}.log" for number in range(2)]
    with files[0].open("w") as one, files[1].open("w") as other:
        runs = [
            each.start("skillpress.pipeline.reproduce", output=output)
            for each, output in zip(pair, (one, other), strict=True)
        ]
        codes = [run.wait(900) for run in runs]
    assert codes == [0, 0], [file.read_text()[-3000:] for file in files]
    assert outputs(pair[0].folder) == outputs(pair[1].folder)
    for each in pair:
        status = each.python("dvc", "status")
        assert status.stdout.split() == ["pin_inputs:", "always", "changed"], status.stdout + status.stderr
    client = MlflowClient(pair[0].environment["MLFLOW_TRACKING_URI"])
    (experiment,) = client.search_experiments(filter_string="name = 'skillpress'")
    found = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in found} == {"FINISHED"}
    trained = [run for run in found if run.data.tags.get("dvc.stage") == "train_policy"]
    steps = [client.get_metric_history(run.info.run_id, "success") for run in trained]
    assert [sorted(point.step for point in history) for history in steps] == [[1, 2]] * 2
