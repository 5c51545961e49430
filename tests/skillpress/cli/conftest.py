"""Files that commands write for other commands, made by the commands themselves, once per session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from skillpress.cli.command import main
from skillpress.cli.init import write_lab
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.models.policy import save_policy

SMALL = ("--environment", "countdown", "--tasks", "10", "--votes", "3")
SHORT = ("--set", "environment.max_steps=8")

Evaluate = Callable[..., Path]


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The folder of an experiment with a fresh policy of two layers."""
    folder = tmp_path_factory.mktemp("experiment")
    values = read_yaml(repository / "params.yaml")
    for overlay in (
        read_yaml(repository / "params" / "smoke.yaml"),
        {"environment": {"max_steps": 8}, "processes": 1},
    ):
        values = merge(values, overlay)
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    save_policy(Experiment(check_params(values, "test")).starting_policy(), folder / "models" / "policy")
    return folder


@pytest.fixture(scope="session")
def policy(experiment: Path) -> str:
    """The model folder of that experiment."""
    return str(experiment / "models" / "policy")


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """``evaluate("name", ...)``: the folder of a small evaluation with these options."""

    def run(name: str, *options: str) -> Path:
        assert main(["evaluate", *SMALL, *options, "--output", str(tmp_path / name)]) == 0
        return tmp_path / name

    return run


@pytest.fixture(scope="session")
def evaluated(policy: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``skillpress evaluate`` writes for that policy; tests only read it."""
    folder = tmp_path_factory.mktemp("evaluations") / "policy"
    assert main(["evaluate", *SMALL, "--model", policy, "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that it writes for the random explorer, on the same tasks; tests only read it."""
    folder = tmp_path_factory.mktemp("evaluations") / "explorer"
    assert main(["evaluate", *SMALL, *SHORT, "--agent", "explorer", "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def new_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new lab, in which this process works."""
    folder = tmp_path / "lab"
    write_lab(folder)
    monkeypatch.chdir(folder)
    for name in ("ROOT", "LAB"):
        monkeypatch.setattr(f"skillpress.core.lab.{name}", folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_lab"]:
        del sys.modules[name]
