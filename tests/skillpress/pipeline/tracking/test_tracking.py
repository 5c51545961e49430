import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from zlib import crc32

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from skillpress.core.errors import UserError
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.tracking import runs
from skillpress.pipeline.tracking.runs import KEY, StageRun, create_database, pipeline_run_id

DVC_YAML = "stages:\n  train:\n    cmd: x\n    deps: [data/tasks, skillpress/skills]\n"
DVC_LOCK = """\
schema: '2.0'
stages:
  make:
    cmd: y
    outs:
    - path: data/tasks
      md5: 1234abcd.dir
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tracking database for this module, in a folder that git made; making one takes seconds."""
    folder = tmp_path_factory.mktemp("tracking")
    (folder / "mlruns").mkdir(0o755)
    (folder / "mlruns" / "README.md").touch()
    patch = pytest.MonkeyPatch()
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlruns/mlflow.db")
    before = os.umask(0o022)
    create_database()
    os.umask(before)
    patch.undo()
    return f"sqlite:///{folder}/mlruns/mlflow.db"


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, database: str, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("dvc.lock").write_text(DVC_LOCK)


@pytest.fixture
def params(repository: Path, request: pytest.FixtureRequest) -> Params:
    """Parameters with a seed for this test only, so that tests share no experiment."""
    seed = crc32(request.node.name.encode())
    return load_params(repository / "params.yaml").model_copy(update={"seed": seed})


def test_processes_that_create_the_database_at_once_take_turns(tmp_path: Path, repository: Path) -> None:
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/new/mlflow.db",
        "PYTHONPATH": str(repository),
    }
    command = [sys.executable, "-m", "skillpress.pipeline.tracking"]
    both = [subprocess.Popen(command, env=environment, cwd=repository) for _ in range(3)]
    assert [process.wait() for process in both] == [0, 0, 0]
    assert (tmp_path / "new" / "mlflow.db").stat().st_size > 100_000


def test_no_other_user_can_read_the_database_or_the_artifacts_beside_it(database: str) -> None:
    file = Path(database.removeprefix("sqlite:///"))
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://user:hunter2@127.0.0.1:1/mlflow",
        "postgresql://user:hunt/er2@127.0.0.1/mlflow",
        "postgresql://user:hunter2@127.0.0.1:port/mlflow",
        "postgresql+nothing://user:hunter2@127.0.0.1/mlflow",
        "postgress://user:hunter2@127.0.0.1/mlflow",
        "postgresql:/user:hunter2@127.0.0.1/mlflow",
        "mysql+nothing://user:hunter2@127.0.0.1/mlflow",
        "http://user:hunter2@127.0.0.1:1",
    ],
)
def test_a_database_that_cannot_be_used_is_an_error_of_one_line_without_its_password(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(MlflowException, match="MLFLOW_TRACKING_URI cannot be used: ") as refused:
        create_database()
    shown = "".join(traceback.format_exception(refused.value))
    assert len(str(refused.value).splitlines()) == 1
    assert "hunt" not in shown


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("garbage.db", "garbage.db is not an SQLite database; name another file, or move that one away"),
        ("garbage.db/x.db", "garbage.db is a file; name another"),
        ("folder", "folder is a folder; name a file in it"),
    ],
)
def test_a_place_that_can_hold_no_database_is_a_line_with_its_path(
    place: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "garbage.db").write_text("garbage")
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/{place}")
    with pytest.raises(UserError, match=f"^MLFLOW_TRACKING_URI cannot be used: .*{re.escape(said)}"):
        create_database()


def test_stages_with_the_same_parameters_share_a_parent_and_others_do_not(params: Params) -> None:
    first, second = StageRun("make", params, "key-m"), StageRun("train", params, "key-t")
    other = StageRun("make", params.model_copy(update={"seed": params.seed + 1}), "key-m")
    assert first.parent_id == second.parent_id != other.parent_id
    assert first.run_id != second.run_id


def test_the_parent_holds_every_parameter_flat_and_the_stage_its_ties_to_dvc_and_prefect(
    params: Params, monkeypatch
) -> None:
    monkeypatch.setenv(runs.FLOW_RUN_VARIABLE, "flow-1")
    run = StageRun("train", params, "key-t")
    client = MlflowClient()
    parent, nested = client.get_run(run.parent_id).data, client.get_run(run.run_id).data
    assert parent.params["skills.max_phrase_length"] == "4"
    assert parent.params["environment.name"] == "countdown"
    assert nested.tags["mlflow.parentRunId"] == run.parent_id
    assert nested.tags["pipeline_run_id"] == parent.tags["pipeline_run_id"] == pipeline_run_id(params)
    assert nested.tags["dvc.stage"] == "train"
    assert nested.tags["dvc.dep.data/tasks"] == "1234abcd.dir"
    assert "dvc.rev" in nested.tags
    assert nested.tags[KEY] == "key-t"
    assert nested.tags["prefect.flow_run_id"] == "flow-1"


def test_a_killed_stage_goes_on_in_its_own_run_and_logs_no_step_twice(params: Params) -> None:
    killed = StageRun("train", params, "key-t")
    for step in (1, 2, 3):
        killed.log_metrics({"success": step / 10}, step)
    resumed = StageRun("train", params, "key-t", killed.run_id)
    for step in (3, 4):  # the checkpoint was taken after step 2
        resumed.log_metrics({"success": step / 10}, step)
    resumed.finish("FINISHED")
    history = MlflowClient().get_metric_history(resumed.run_id, "success")
    assert resumed.run_id == killed.run_id
    assert [(point.step, point.value) for point in history] == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]


def test_a_finished_stage_or_one_with_another_key_gets_a_new_run(params: Params) -> None:
    finished = StageRun("train", params, "key-t")
    finished.finish("FINISHED")
    unfinished = StageRun("train", params, "key-t", finished.run_id)
    other = StageRun("train", params, "key-u", unfinished.run_id)
    elsewhere = StageRun("train", params, "key-t", "of another database")
    assert len({run.run_id for run in (finished, unfinished, other, elsewhere)}) == 4


def test_the_same_stage_of_another_clone_has_a_run_of_its_own_under_the_same_parent(params: Params) -> None:
    here, there = (StageRun("train", params, "key-t") for _ in range(2))
    assert here.parent_id == there.parent_id and here.run_id != there.run_id


def test_a_stage_killed_on_a_dirty_tree_whose_code_was_edited_then_writes_no_step_into_the_old_run(
    params: Params,
) -> None:
    """The revision is the same, ``<commit>-dirty``; the key distinguishes the trees."""
    killed = StageRun("train", params, "before the edit")
    killed.log_metrics({"success": 0.1}, 1)
    edited = StageRun("train", params, "after the edit", killed.run_id)
    edited.log_metrics({"success": 0.9}, 1)
    client = MlflowClient()
    values = [[p.value for p in client.get_metric_history(run.run_id, "success")] for run in (killed, edited)]
    assert values == [[0.1], [0.9]]


def test_a_killed_stage_goes_on_in_its_run_at_another_revision_that_decides_nothing(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change to the README, for example."""
    killed = StageRun("train", params, "key-t")
    monkeypatch.setattr(runs, "revision", lambda: "another")
    assert StageRun("train", params, "key-t", killed.run_id).run_id == killed.run_id


def test_a_summary_and_files_stand_on_the_experiments_own_run_too(params: Params, tmp_path: Path) -> None:
    run = StageRun("train", params, "key-t")
    run.log_summary({"trained/pass_at_1": 0.5})
    page = tmp_path / "report.html"
    page.write_text("<html>")
    run.log_file(page)
    client = MlflowClient()
    assert client.get_run(run.parent_id).data.metrics == {"trained/pass_at_1": 0.5}
    assert [item.path for item in client.list_artifacts(run.parent_id)] == ["report.html"]


def test_a_run_whose_clock_is_set_back_does_not_end_before_it_began(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    run = StageRun("train", params, "key-t")
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    monkeypatch.setattr(time, "time_ns", lambda: int(now - 3600) * 10**9)
    run.finish("FINISHED")
    for run_id in (run.run_id, run.parent_id):
        info = MlflowClient().get_run(run_id).info
        assert info.end_time >= info.start_time


def test_a_summary_replaces_an_earlier_one_though_the_clock_was_set_back(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow shows the figure with the latest time, and of two with one time the larger."""
    now = time.time_ns
    run = StageRun("train", params, "key-t")
    run.log_summary({"trained/pass_at_1": 0.5, "trained/tasks": 32})
    monkeypatch.setattr(time, "time_ns", lambda: now() - 3600 * 10**9)
    StageRun("train", params, "key-u").log_summary({"trained/pass_at_1": 0.25})
    found = MlflowClient().get_run(run.parent_id).data.metrics
    assert found == {"trained/pass_at_1": 0.25, "trained/tasks": 32}
