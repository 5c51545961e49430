"""The runs of a comparison's experiments are its children, whether their stages ran or were restored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.tracking.comparison_run import comparison_run
from skillpress.pipeline.tracking.runs import PARENT_VARIABLE, StageRun, create_database


@pytest.fixture(autouse=True, scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A tracking database for this module; making one takes seconds."""
    folder = tmp_path_factory.mktemp("tracking")
    patch = pytest.MonkeyPatch()
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlruns/mlflow.db")
    create_database()
    yield
    patch.undo()


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of one method and seed."""
    folder = tmp_path / "workspaces" / "grpo-seed3"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def seeded(repository: Path, seed: int) -> Params:
    return load_params(repository / "params.yaml").model_copy(update={"seed": seed})


def run_of(run_id: str) -> Run:
    return MlflowClient().get_run(run_id)


def test_an_experiments_run_stands_below_the_comparison_and_its_name_has_the_seed_once(
    repository: Path, inside: Path
) -> None:
    params = seeded(repository, 3)
    with comparison_run("ablation", {"methods": ["grpo"], "seeds": [3]}, "flow") as compared:
        stage = StageRun("train", params, "key")
        stage.finish("FINISHED")
        assert run_of(compared.run_id).info.status == "RUNNING", "from the first minute"
    experiment = run_of(stage.parent_id)
    assert experiment.data.tags["mlflow.parentRunId"] == compared.run_id
    assert experiment.info.run_name.startswith("SegCost (buffer) seed 3 "), "not what the folder says"
    assert run_of(stage.run_id).data.tags["mlflow.parentRunId"] == stage.parent_id
    whole = run_of(compared.run_id)
    assert whole.info.status == "FINISHED" and whole.data.tags["prefect.flow_run_id"] == "flow"
    assert whole.data.params == {"methods": "['grpo']", "seeds": "[3]"}
    assert PARENT_VARIABLE not in os.environ


def test_an_experiment_that_was_restored_is_put_below_the_comparison_too(
    repository: Path, inside: Path
) -> None:
    params = seeded(repository, 4)
    stage = StageRun("train", params, "key")
    assert "mlflow.parentRunId" not in run_of(stage.parent_id).data.tags
    with comparison_run("ablation", {"seeds": [4]}) as compared:
        compared.adopt(params)
        compared.adopt(seeded(repository, 5))  # this experiment has recorded nothing
    assert run_of(stage.parent_id).data.tags["mlflow.parentRunId"] == compared.run_id


def test_a_comparison_that_was_ended_goes_on_in_its_own_run(inside: Path) -> None:
    asked = {"seeds": [6]}
    with pytest.raises(KeyboardInterrupt), comparison_run("ablation", asked) as first:
        raise KeyboardInterrupt
    assert run_of(first.run_id).info.status == "KILLED"
    with comparison_run("ablation", asked) as again, comparison_run("ablation", {"seeds": [7]}) as other:
        assert first.run_id == again.run_id != other.run_id
    with comparison_run("ablation", asked) as later:
        assert later.run_id != first.run_id, "what is finished is not gone on with"
