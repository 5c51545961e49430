"""dvc.yaml is short and complete, and gives the inputs of keys of unfinished work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.experiment.params import load_params
from skillpress.pipeline.graph import read_stage, read_stages

STAGES = (
    "prepare_tasks", "prepare_policy", "collect_rollouts", "filter_tasks", "project_skills",
    "fit_dictionary", "train_policy", "play_floors", "evaluate_policy", "report",
)  # fmt: skip
FINGERPRINT = {"code": {"tasks/train_policy.py": "0"}}


@pytest.fixture(scope="module")
def stages(repository: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((repository / "dvc.yaml").read_text())["stages"]


def made_by(stage: dict[str, Any]) -> set[str]:
    listed = [path for kind in ("outs", "metrics") for path in stage.get(kind, [])]
    return {path if isinstance(path, str) else next(iter(path)) for path in listed}


def test_the_graph_is_read_in_a_minute(repository: Path) -> None:
    assert len((repository / "dvc.yaml").read_text().splitlines()) <= 200


def test_there_is_one_module_per_stage(stages: dict[str, dict[str, Any]], repository: Path) -> None:
    assert tuple(stages)[1:] == STAGES
    assert {path.stem for path in (repository / "tasks").glob("*.py")} - {"__init__", "__main__"} == set(
        STAGES
    )
    for name in STAGES:
        assert stages[name]["cmd"] == f"python -m tasks {name}"


def test_every_stage_depends_on_its_fingerprint_and_on_no_code_by_name(
    stages: dict[str, dict[str, Any]], repository: Path
) -> None:
    fingerprints = {f"data/fingerprints/{name}.json" for name in STAGES}
    assert made_by(stages["pin_inputs"]) == fingerprints
    for entry in read_stages(repository / "dvc.yaml")[1:]:
        assert fingerprints & set(map(str, entry.dependencies)) == {str(entry.fingerprint)}
        assert not [path for path in entry.dependencies if path.suffix == ".py"]


def test_every_dependency_is_made_by_a_stage_or_exists(
    stages: dict[str, dict[str, Any]], repository: Path
) -> None:
    made = set().union(*map(made_by, stages.values()))
    for name in STAGES:
        for path in stages[name]["deps"]:
            assert path in made or (repository / path).exists(), path


def test_every_parameter_is_a_dependency_of_a_stage(
    stages: dict[str, dict[str, Any]], repository: Path
) -> None:
    used = {key.split(".")[0] for name in STAGES for key in stages[name]["params"]}
    assert used == set(yaml.safe_load((repository / "params.yaml").read_text()))


def test_every_stage_but_the_last_feeds_another_and_training_takes_tasks_and_successes(
    stages: dict[str, dict[str, Any]],
) -> None:
    read = set().union(*(stages[name]["deps"] for name in STAGES))
    assert [name for name in STAGES if not made_by(stages[name]) & read] == ["report"]
    before = (
        made_by(stages["filter_tasks"])
        | made_by(stages["fit_dictionary"])
        | made_by(stages["collect_rollouts"])
    )
    assert before & set(stages["train_policy"]["deps"]) == {
        "data/kept/train.parquet",
        "data/skills/start.json",
    }


KEEPS_WORK = {"prepare_policy", "collect_rollouts", "play_floors", "train_policy", "evaluate_policy"}
"""The stages that continue the work of a killed process."""


def test_the_stages_that_take_long_keep_unfinished_work(repository: Path) -> None:
    sources = {module.stem: module.read_text() for module in (repository / "tasks").glob("*.py")}
    keeping = {name for name, text in sources.items() if "stage.store" in text or "play(stage," in text}
    assert keeping == KEEPS_WORK


@pytest.fixture
def values(repository: Path) -> dict[str, Any]:
    """The parameters of the default experiment."""
    return load_params(repository / "params.yaml").model_dump(mode="json")


@pytest.fixture
def folder(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the graph and some data for every stage."""
    (tmp_path / "dvc.yaml").write_text((repository / "dvc.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    for entry in read_stages()[1:]:
        for path in entry.dependencies:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    return tmp_path


@pytest.mark.parametrize("name", sorted(KEEPS_WORK))
def test_unfinished_work_has_a_key_of_its_code_its_inputs_and_its_parameters(
    name: str, folder: Path, values: dict[str, Any]
) -> None:
    entry = read_stage(name)
    keys = [entry.key(values, FINGERPRINT)]
    assert entry.key(values, FINGERPRINT) == keys[0]
    keys.append(entry.key(values, {"code": {"tasks/train_policy.py": "1"}}))
    keys.append(entry.key(values | {"seed": values["seed"] + 1}, FINGERPRINT))
    (folder / "data" / "tasks").write_text("others")
    keys.append(entry.key(values, FINGERPRINT))
    assert len(set(keys)) == 4


def test_the_key_is_made_from_the_code_that_runs_whatever_the_first_stage_has_written(
    folder: Path, values: dict[str, Any]
) -> None:
    entry = read_stage("train_policy")
    before = entry.key(values, FINGERPRINT)
    entry.fingerprint.unlink()
    assert entry.key(values, FINGERPRINT) == before


def test_the_key_of_unfinished_training_changes_with_its_parameters_alone(
    folder: Path, values: dict[str, Any]
) -> None:
    entry = read_stage("train_policy")
    key = entry.key(values, FINGERPRINT)
    values["evaluation"] |= {"runs": 7}
    assert entry.key(values, FINGERPRINT) == key
    values["training"] |= {"steps": 7}
    assert entry.key(values, FINGERPRINT) != key


def test_unfinished_training_goes_on_when_its_teacher_is_at_another_address(
    folder: Path, values: dict[str, Any]
) -> None:
    teacher = {
        "name": "server",
        "url": "http://a/v1",
        "model": "m",
        "key_variable": "",
        "max_new_tokens": 9,
        "omit": [],
    }

    def key(**changed: str) -> str:
        values["skills"] |= {"library": {"top_k": 1, "teacher": teacher | changed}}
        return read_stage("train_policy").key(values, FINGERPRINT)

    assert key() == key(url="http://b:8000", key_variable="OTHER")
    assert key() != key(model="another")
