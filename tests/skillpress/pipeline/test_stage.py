"""The start and end of a stage, whatever it computes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import psutil
import pytest
import yaml
from mlflow import MlflowClient

from flows.stages import StageFailedError, worth_retrying
from skillpress.core.errors import StorageError
from skillpress.pipeline import exit_codes
from skillpress.pipeline import stage as module
from skillpress.pipeline.reproduce.lock import exclusive, stage_lock
from skillpress.pipeline.stage import Stage, run_stage
from skillpress.pipeline.tracking.recorder import Recorder, TrackingError
from skillpress.pipeline.tracking.runs import KEY, create_database
from tasks import prepare_tasks, train_policy

DVC_YAML = {
    "stages": {
        "prepare_tasks": {
            "cmd": "python -m tasks prepare_tasks",
            "deps": ["code.py"],
            "params": ["seed"],
            "outs": ["data/tasks"],
        }
    }
}


@pytest.fixture(scope="module", autouse=True)
def database() -> None:
    create_database()


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, repository: Path, monkeypatch, request: pytest.FixtureRequest) -> None:
    """An experiment's folder; each test has its own seed, so that no test resumes another's run."""
    monkeypatch.chdir(tmp_path)
    for variable in ("SKILLPRESS_PARENT", "SKILLPRESS_STAGES", "DVC_STAGE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(repository))  # for the recorder, which runs in this folder
    text = (repository / "params.yaml").read_text()
    Path("params.yaml").write_text(text.replace("seed: 0", f"seed: {crc32(request.node.name.encode())}"))
    Path("dvc.yaml").write_text(yaml.safe_dump(DVC_YAML))
    Path("code.py").write_text("VERSION = 1\n")


Work = Callable[[Stage], None]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], int]:
    """Runs the stage prepare_tasks with other work in it; returns the exit code."""

    def run_with(work: Work) -> int:
        monkeypatch.setattr(prepare_tasks, "main", work)
        return run_stage("prepare_tasks")

    return run_with


@pytest.fixture
def outcome(run: Callable[[Work], int]) -> Callable[[Work], tuple[int, str, set[str]]]:
    """Does the same; returns (exit code, MLflow status of the stage's run, its artifacts)."""

    def outcome_of(work: Work) -> tuple[int, str, set[str]]:
        seen: list[str] = []

        def watched(stage: Stage) -> None:
            seen.append(stage.run.run_id)
            work(stage)

        code = run(watched)
        client = MlflowClient()
        artifacts = {item.path for item in client.list_artifacts(seen[0])}
        return code, client.get_run(seen[0]).info.status, artifacts

    return outcome_of


def raising(error: BaseException) -> Work:
    def work(stage: Stage) -> None:
        raise error

    return work


@pytest.mark.parametrize(
    "error", [StorageError("x.parquet: no such file"), PermissionError(13, "Permission denied", "x.parquet")]
)
def test_what_a_user_can_put_right_is_one_line_and_a_code_of_its_own(
    error: Exception, outcome: Callable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(raising(error)) == (exit_codes.USER_ERROR, "FAILED", {"error.txt"})
    assert capsys.readouterr().err == f"prepare_tasks: {error}\n"


def test_ctrl_c_is_one_line_and_130(outcome: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(raising(KeyboardInterrupt())) == (130, "KILLED", set())
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("bug"),
        ValueError("probability tensor contains nan"),
        TrackingError("database is locked"),
        OSError(5, "Input/output error", "x.parquet"),
    ],
)
def test_what_nobody_can_put_right_is_raised(error: Exception, run: Callable[[Work], int]) -> None:
    with pytest.raises(type(error)):
        run(raising(error))


FAILING = """
import runpy, sys
from tasks import prepare_tasks

def main(stage):
    raise ValueError("probability tensor contains nan")

prepare_tasks.main = main
sys.argv = ["tasks", "prepare_tasks"]
runpy.run_module("tasks", run_name="__main__")
"""


def python(code: str, repository: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(repository), **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def retried(code: int) -> bool:
    from prefect.states import Failed

    return worth_retrying(None, None, Failed(data=StageFailedError("prepare_tasks", code)))


def test_a_value_error_inside_a_stage_keeps_its_traceback_exits_with_1_and_is_retried(
    repository: Path,
) -> None:
    done = python(FAILING, repository)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "ValueError: probability tensor contains nan" in done.stderr
    assert retried(done.returncode)


def test_a_database_that_cannot_be_used_now_exits_with_1_and_is_retried(
    tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    code = FAILING.replace('raise ValueError("probability tensor contains nan")', "stage.run.run_id")
    done = python(code, repository, MLFLOW_TRACKING_URI=f"sqlite:///{tmp_path}/broken.db")
    assert done.returncode == 1
    assert "prepare_tasks's run in MLflow" in done.stderr
    assert retried(done.returncode)


@pytest.mark.parametrize("code", [exit_codes.USER_ERROR, exit_codes.INTERRUPTED])
def test_what_the_user_must_put_right_or_stopped_himself_is_not_retried(code: int) -> None:
    assert not retried(code)


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("error", ""),
        ("info", r"prepare_tasks: done in [\d.]+ s\n"),
        ("debug", r"prepare_tasks: key \w+, begins\nprepare_tasks: done in [\d.]+ s\n"),
    ],
)
def test_a_stage_that_is_done_says_so_unless_errors_alone_are_shown(
    level: str,
    said: str,
    outcome: Callable,
    log_level: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_level(level)
    assert outcome(lambda stage: None) == (0, "FINISHED", set())
    assert re.fullmatch(said, capsys.readouterr().err)


def test_wrong_parameters_are_refused_before_any_work(
    run: Callable[[Work], int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("params.yaml").write_text(Path("params.yaml").read_text().replace("seed: ", "seed: about "))
    assert run(lambda stage: pytest.fail("worked on wrong parameters")) == exit_codes.USER_ERROR
    assert "seed: is 'about" in capsys.readouterr().err


def test_unfinished_work_and_the_mlflow_run_bear_the_same_key_and_an_edit_changes_both(
    run: Callable[[Work], int],
) -> None:
    seen: list[tuple[str, str]] = []

    def work(stage: Stage) -> None:
        tags = MlflowClient().get_run(stage.run.run_id).data.tags
        assert tags[KEY] == stage.store.key == stage.store.folder.name
        seen.append((stage.store.key, stage.run.run_id))
        raise KeyboardInterrupt

    run(work)
    run(work)
    assert seen[0] == seen[1], "it goes on where it was stopped"
    Path("code.py").write_text("VERSION = 2\n")
    run(work)
    assert seen[2][0] != seen[0][0] and seen[2][1] != seen[0][1]


def test_what_a_killed_process_left_is_gone_before_the_stage_works(run: Callable[[Work], int]) -> None:
    left = [Path("data/.tasks.x1y2"), Path("checkpoints/.cleared.abc")]
    others = [Path("data/rollouts"), Path("checkpoints/abc")]
    for folder in left + others:
        folder.mkdir(parents=True)
        (folder / "file").touch()

    def work(stage: Stage) -> None:
        assert not any(folder.exists() for folder in left)
        assert all((folder / "file").exists() for folder in others)

    assert run(work) == 0


def test_unfinished_work_is_kept_until_the_stage_is_recorded(
    run: Callable[[Work], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage whose record fails has failed, and hours of training would be done again."""
    folders: list[Path] = []

    def work(stage: Stage) -> None:
        folders.append(stage.store.folder)
        stage.store.folder.mkdir(parents=True, exist_ok=True)

    finish = Recorder.finish

    def fail(recorder: Recorder, status: str) -> None:
        finish(recorder, status)
        raise TrackingError("http://127.0.0.1:9 does not answer")

    with monkeypatch.context() as patch, pytest.raises(TrackingError):
        patch.setattr(Recorder, "finish", fail)
        run(work)
    assert folders[0].exists()
    assert run(work) == 0
    assert folders[1] == folders[0] and not folders[1].exists()


WORKING = """
import os, runpy, sys, time
from pathlib import Path
from tasks import prepare_tasks

def main(stage):
    stage.run.log_metrics({"reward": 1.0}, 1)
    Path("working.tmp").write_text(f"{os.getpid()} {stage.run.run_id}")
    Path("working.tmp").rename("working")
    time.sleep(600)

prepare_tasks.main = main
sys.argv = ["tasks", "prepare_tasks"]
runpy.run_module("tasks", run_name="__main__")
"""
LIKE_REPRODUCE = """
import subprocess, sys, time
from skillpress.pipeline import parent
parent.name_this_process()
subprocess.Popen([sys.argv[1], "-c", '"$0" "$@"' + sys.argv[2], sys.executable, "-c", sys.argv[3]]).wait()
"""


def started(command: list[str], repository: Path) -> tuple[subprocess.Popen[bytes], int, str]:
    """A process with a stage among its descendants; also the stage's process and MLflow run."""
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(repository)})
    deadline = time.monotonic() + 120
    while not Path("working").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    stage, run_id = Path("working").read_text().split()
    return process, int(stage), run_id


@pytest.fixture
def working(repository: Path) -> Iterator[int]:
    """The process of a working stage."""
    process, _, _ = started([sys.executable, "-c", WORKING], repository)
    yield process.pid
    process.kill()
    process.wait()


def test_a_second_process_of_a_stage_waits_and_then_says_who_is_at_it(
    working: int, run: Callable[[Work], int], monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(module, "LOCK_WAIT_SECONDS", 1.0)
    assert run(lambda stage: pytest.fail("two at once")) == exit_codes.USER_ERROR
    assert f"stage prepare_tasks is still in use by process {working}" in capsys.readouterr().err


@pytest.mark.kills
@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("more", ["", "; true"], ids=["replaced by it", "in between"])
def test_a_stage_ends_with_the_run_that_started_it_and_all_that_it_said_is_recorded(
    shell: str, more: str, repository: Path
) -> None:
    command = [sys.executable, "-c", LIKE_REPRODUCE, shell, more, WORKING]
    process, stage, run_id = started(command, repository)
    recorder = psutil.Process(stage).children()
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(recorder, timeout=60)
    assert recorder and not alive
    assert not psutil.pid_exists(stage)
    found = MlflowClient().get_run(run_id)
    assert found.data.metrics["reward"] == 1.0 and found.info.status == "RUNNING"
    assert stage_lock("prepare_tasks").exists()


@pytest.mark.kills
def test_a_stage_started_by_hand_outlives_its_shell(repository: Path) -> None:
    """It behaves as under ``nohup``."""
    command = ["sh", "-c", '"$0" "$@" & wait', sys.executable, "-c", WORKING]
    process, stage, _ = started(command, repository)
    process.kill()
    process.wait()
    time.sleep(1)
    assert psutil.pid_exists(stage)
    psutil.Process(stage).kill()


TORCHRUN = {"LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def test_a_launcher_may_start_training_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**TORCHRUN, "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert run_stage("prepare_tasks") == exit_codes.USER_ERROR
    assert "only train_policy is shared" in capsys.readouterr().err


def test_a_launchers_other_ranks_train_and_keep_no_records(
    monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    """Helping ranks need neither the stage's lock, which rank 0 holds, nor a run in MLflow."""
    entry = {
        **DVC_YAML["stages"]["prepare_tasks"],
        "cmd": "python -m tasks train_policy",
        "outs": ["models/policy"],
    }
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": {"train_policy": entry}}))
    helped: list[str] = []
    monkeypatch.setattr(train_policy, "help_rank_0", lambda params, store: helped.append(store.key))
    for name, value in {**TORCHRUN, "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    before = len(MlflowClient().search_experiments())
    with exclusive(stage_lock("train_policy"), "held by rank 0", 0):
        assert run_stage("train_policy") == 0
    assert len(helped) == 1 and len(MlflowClient().search_experiments()) == before
