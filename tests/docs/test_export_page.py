"""The examples of docs/export.md, run unchanged from the page, in the folder of a small run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from skillpress.cli import command
from skillpress.experiment.params import load_params
from skillpress.pipeline.files import BASE_POLICY, TRAINING_ADVANTAGES, TRAINING_ROLLOUTS
from skillpress.pipeline.tracking.runs import StageRun
from skillpress.training.loop.describing.trained_episodes import ADVANTAGE_SCHEMA, TrainedEpisodes
from tests.support.integrations.playing import episode, unsampled, write_tokenizer

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^<!-- test: (\w+) -->\n```(?:python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = dict(BLOCK.findall((ROOT / "docs" / "export.md").read_text()))
PLAYED = [episode(), unsampled()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of training, exported and recorded as the page says."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlruns/mlflow.db")
        lessons = [
            (one.task_id, one.group_id, one.rollout_index, number, 1, True, float(number), 10.0, 0.5, 2.0)
            for one in PLAYED
            for number in range(len(one.decisions))
        ]
        frame = pl.DataFrame(lessons, schema=ADVANTAGE_SCHEMA, orient="row")
        TrainedEpisodes(TRAINING_ROLLOUTS, TRAINING_ADVANTAGES).write(PLAYED, frame)
        write_tokenizer(BASE_POLICY)
        for line in BLOCKS["export"].splitlines():
            assert command.main(shlex.split(line)[1:]) == 0, line
        record = StageRun("train_policy", load_params(ROOT / "params.yaml"), "key")
        record.log_episodes(TRAINING_ROLLOUTS, BASE_POLICY, most=100)
    return folder


def example(name: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """The variables after an example of the page."""
    monkeypatch.chdir(run)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{run}/mlruns/mlflow.db")
    names: dict[str, Any] = {}
    exec(BLOCKS[name], names)
    return names


def test_the_examples_are_those_that_are_tested_here() -> None:
    assert list(BLOCKS) == ["training", "export", "atif", "datasets", "sharegpt", "mlflow"]


def test_advantages_stand_beside_their_decisions(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    best = example("training", run, monkeypatch)["best"]
    assert best.row(0) == (1, "It is open.", "open it", 2.0)


def test_an_atif_document_is_read(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example("atif", run, monkeypatch)
    assert capsys.readouterr().out == "think first open open won\n"


def test_what_won_is_taken_out_of_the_dataset(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = example("datasets", run, monkeypatch)["good"]
    assert good["completion"] == ["think first open", "a door", "open it"]


def test_a_talk_is_read(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example("sharegpt", run, monkeypatch)
    assert capsys.readouterr().out == "You see a door.\n"


def test_lost_episodes_are_found_among_the_traces(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(example("mlflow", run, monkeypatch)["lost"]) == 1
    assert capsys.readouterr().out == "It is dark.\n"
