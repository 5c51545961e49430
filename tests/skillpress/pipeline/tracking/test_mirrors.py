"""Other trackers get what MLflow records. W&B writes offline; both packages' files are read back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pytest
from mlflow import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from wandb.proto.wandb_internal_pb2 import Record

from skillpress.core.errors import ParamsError
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.tracking import mirrors
from skillpress.pipeline.tracking.mirrors import TRACKERS, trackers
from skillpress.pipeline.tracking.recorder import Recorder
from skillpress.pipeline.tracking.runs import StageRun, create_database

KILLED = """
import time
from skillpress.experiment.params import load_params
from skillpress.pipeline.tracking.recorder import Recorder
run = Recorder("train_policy", load_params(), "key")
for step in (1, 2, 3):
    run.log_metrics({"reward": float(step)}, step)
print(run.run_id, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("mirrors")
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
        create_database()
        yield


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, database: None, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACKERS, "mlflow, wandb, tensorboard")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "tensorboard"))
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text((repository / "params.yaml").read_text())


@pytest.fixture
def params(request: pytest.FixtureRequest) -> Params:
    """Parameters with a seed for this test only, so that tests share no experiment."""
    return load_params().model_copy(update={"seed": crc32(request.node.name.encode())})


def wandb_records(folder: Path) -> Iterator[Record]:
    """The records of all offline runs, oldest first: LevelDB's log of blocks of 32 KB, after 7 bytes."""
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        data, at, record = path.read_bytes(), 7, b""
        while at + 7 <= len(data):
            if 32768 - at % 32768 < 7:
                at += 32768 - at % 32768
                continue
            size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
            record += data[at + 7 : at + 7 + size]
            at += 7 + size
            if kind in (1, 4):  # whole, or the last part
                yield Record.FromString(record)
                record = b""


def wandb_rewards(folder: Path) -> list[float]:
    """The rewards of W&B's history."""
    items = [item for each in wandb_records(folder) for item in each.history.item]
    return [float(item.value_json) for item in items if item.key == "reward" or item.nested_key == ["reward"]]


def tensorboard(folder: Path) -> EventAccumulator:
    """TensorBoard's own reading of the only run below this folder."""
    (run,) = {path.parent for path in folder.glob("tensorboard/*/*/events.*")}
    return EventAccumulator(str(run)).Reload()


def test_both_have_the_steps_the_figures_the_parameters_and_the_name_of_mlflows_run(
    params: Params, tmp_path: Path
) -> None:
    run = StageRun("train_policy", params, "key")
    run.log_metrics({"reward": 1.0, "loss": float("nan")}, 1)
    run.log_metrics({"reward": 2.0}, 2)
    run.log_summary({"trained/pass_at_1": 0.5})
    run.finish("FINISHED")
    name = MlflowClient().get_run(run.parent_id).info.run_name
    records = list(wandb_records(tmp_path))
    (begun,) = (each.run for each in records if each.HasField("run"))
    assert (begun.run_id, begun.display_name, begun.run_group) == (run.run_id, f"{name} train_policy", name)
    assert {item.key: item.value_json for item in begun.config.update}["skills.max_phrase_length"] == '"4"'
    assert wandb_rewards(tmp_path) == [1.0, 2.0]
    assert any(item.value_json == "0.5" for each in records for item in each.summary.update)
    assert [each.exit.exit_code for each in records if each.HasField("exit")] == [0]
    read = tensorboard(tmp_path)
    assert [(point.step, point.value) for point in read.Scalars("reward")] == [(1, 1.0), (2, 2.0)]
    assert [point.value for point in read.Scalars("trained/pass_at_1")] == [0.5]
    (described,) = read.PluginTagToContent("hparams").values()
    hparams = HParamsPluginData.FromString(described).session_start_info.hparams
    assert hparams["skills.max_phrase_length"].string_value == "4"
    assert Path(read.path).parent.name == name


@pytest.mark.kills
def test_a_killed_stage_goes_on_in_the_same_copies_and_no_step_is_there_twice(
    tmp_path: Path, repository: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository), *sys.path])}
    command, pipe = [sys.executable, "-c", KILLED], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as stage:
        assert stage.stdout is not None and stage.stderr is not None
        run_id = stage.stdout.readline().strip()
        stage.send_signal(signal.SIGKILL)
        stage.stderr.read()  # until the recorder has ended
    resumed = Recorder("train_policy", load_params(), "key")
    for step in (3, 4):  # the checkpoint was taken after step 2
        resumed.log_metrics({"reward": float(step)}, step)
    resumed.finish("FINISHED")
    assert wandb_rewards(tmp_path) == [1.0, 2.0, 3.0, 4.0]
    assert {each.run.run_id for each in wandb_records(tmp_path) if each.HasField("run")} == {run_id}
    assert [point.step for point in tensorboard(tmp_path).Scalars("reward")] == [1, 2, 3, 4]


def test_without_the_setting_mlflow_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRACKERS)
    assert trackers() == []


@pytest.mark.parametrize("value", ["wandb", "mlflow,neptune", ""])
def test_a_setting_that_leaves_mlflow_out_or_names_another_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACKERS, value)
    with pytest.raises(ParamsError, match=f"{TRACKERS} is '{value}'; must be mlflow, or mlflow and then"):
        trackers()


def test_a_missing_package_is_an_error_before_any_work_that_names_the_extra(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "find_spec", lambda name: None if name == "wandb" else find_spec(name))
    with pytest.raises(ParamsError, match=r"wandb, which is not installed: .*skillpress\[trackers\]"):
        Recorder("train_policy", params, "key")
