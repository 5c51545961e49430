"""An ablation over machines that share only a DVC remote, an MLflow server and a revision."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest
from mlflow import MlflowClient

from flows.machines import AblationMachines
from skillpress.core.errors import UserError
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.settings import ROOT
from skillpress.rollouts.workers.ranks import free_port
from tests.support.clone import Clone
from tests.support.rollouts.simulated_cluster import SimulatedCluster

GRPO, SEGCOST = ("--params", "params/grpo.yaml"), ("--params", "params/segcost.yaml")
OF_METHOD = ["train_policy", "evaluate_policy", "report"]
"""The stages that methods of one seed do not share."""


def test_every_machine_gets_the_same_command() -> None:
    variant = Variant((ROOT / "params" / "grpo.yaml",), 3)
    options = AblationMachines("node0:6379", "s3://bucket/experiments").options(variant)
    assert options == [*GRPO, "--seed", "3", "--remote", "s3://bucket/experiments"]


def test_an_overlay_that_only_this_machine_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="other machines have only what is committed"):
        AblationMachines("node0:6379", "s3://bucket").options(Variant((tmp_path / "mine.yaml",), 3))


WAITING = """
import os, time
from pathlib import Path
Path("began").write_text(str(os.getpid()))
while not Path("end").exists():
    time.sleep(0.1)
"""
"""Replaces an experiment in a machine's checkout."""
TWICE = """
import sys
from pathlib import Path
from flows.machines import AblationMachines, MachineLostError
from skillpress.pipeline.reproduce.workspace import Variant
machines, variant = AblationMachines(sys.argv[1], "a remote"), Variant((Path("params/grpo.yaml"),), 0)
with machines.joined(1):
    for _ in range(2):
        try:
            outcome = machines.run(variant, 1)
            print("ended", outcome.exit_code, outcome.node, flush=True)
        except MachineLostError as error:
            print("lost", error, flush=True)
"""
"""Runs an experiment, and again if its machine is lost, like ``flows.ablation``."""


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("whole", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_an_experiment_whose_machine_is_lost_is_named_ends_there_and_can_be_given_out_again(
    repository: Path, tmp_path: Path, whole: bool
) -> None:
    """``whole``: the machine with everything on it, not only its Ray process."""
    head = Clone(repository, tmp_path / "head")
    checkouts = {name: waiting_checkout(tmp_path / name) for name in ("left", "right")}
    with ExitStack() as stack:
        cluster = SimulatedCluster(tmp_path, dict(head.environment))
        stack.callback(cluster.shut_down)
        for name, checkout in checkouts.items():
            cluster.add(name, SKILLPRESS_ROOT=str(checkout))
        program = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", TWICE, cluster.address],
                cwd=head.folder, env=cluster.environment, text=True, stdout=subprocess.PIPE,
            )
        )  # fmt: skip
        stack.callback(program.kill)
        lost = wait_for_begin(checkouts, program)
        process = psutil.Process(int((checkouts[lost] / "began").read_text()))
        cluster.kill(lost, whole=whole)
        process.wait(60)
        left = checkouts[next(name for name in checkouts if name != lost)]
        (left / "end").touch()
        said, _ = program.communicate(timeout=300)
    first, second = (line for line in said.splitlines() if line.startswith(("lost ", "ended ")))
    assert first.startswith("lost grpo-seed0 on another machine: lost (")
    assert second.startswith("ended 0 ") and second.endswith(f", {left}")


def waiting_checkout(folder: Path) -> Path:
    """A folder in which ``skillpress run`` waits."""
    program = folder / "skillpress" / "pipeline" / "reproduce" / "__main__.py"
    program.parent.mkdir(parents=True)
    program.write_text(WAITING)
    for package in program.parents[:3]:
        (package / "__init__.py").touch()
    return folder


def wait_for_begin(checkouts: dict[str, Path], program: subprocess.Popen[str]) -> str:
    """The checkout in which an experiment has begun."""
    deadline = time.monotonic() + 300
    while not (found := [name for name, folder in checkouts.items() if begun(folder)]):
        assert program.poll() is None, f"the program ended with exit code {program.returncode}"
        assert time.monotonic() < deadline, "no machine begins"
        time.sleep(0.1)
    return found[0]


def begun(checkout: Path) -> bool:
    file = checkout / "began"
    return file.exists() and file.read_text() != ""


@pytest.mark.slow
@pytest.mark.thorough  # three clones, Ray and MLflow's server beside each other: minutes, and gigabytes
@pytest.mark.timeout(1800)
class TestThreeClones:
    """The head, which only distributes and compares, and two machines that run experiments."""

    @pytest.fixture
    def head(self, repository: Path, tmp_path: Path) -> Clone:
        return Clone(repository, tmp_path / "head")

    @pytest.fixture
    def tracking(self, head: Clone, tmp_path: Path) -> Iterator[str]:
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
        self, head: Clone, reproduced: Clone, tracking: str, tmp_path: Path
    ) -> None:
        remote = ("--remote", str(tmp_path / "remote"))
        left, right = head.cloned(tmp_path / "left"), head.cloned(tmp_path / "right")
        shutil.copytree(reproduced.folder / ".dvc" / "cache", left.folder / ".dvc" / "cache")
        done = left.python(
            "skillpress.pipeline.reproduce", *GRPO, "--seed", "0", *remote, MLFLOW_TRACKING_URI=tracking
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert left.ran(done.stdout) == OF_METHOD, "the others were done there before"

        cluster = SimulatedCluster(tmp_path, dict(head.environment))
        try:
            cluster.add("right", SKILLPRESS_ROOT=str(right.folder))
            head.environment = cluster.environment
            where = ("--cluster", cluster.address, *remote)
            run = head.python(
                "flows.ablation", *GRPO, *SEGCOST, "--seeds", "0", *where, MLFLOW_TRACKING_URI=tracking
            )
        finally:
            cluster.shut_down()
        assert run.returncode == 0, run.stdout + run.stderr
        assert ran(right, "grpo-seed0") == [], "all of it was done on the left machine"
        assert ran(right, "segcost-seed0") == OF_METHOD
        assert ran(head, "grpo-seed0") == ran(head, "segcost-seed0") == [], "the head takes what came out"
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
