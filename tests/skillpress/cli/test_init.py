"""``skillpress init``: the contents of a new lab; its own tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from skillpress.cli.command import main
from skillpress.core.lab import find_lab
from skillpress.core.version import __version__
from skillpress.pipeline import exit_codes
from skillpress.pipeline.reproduce.workspace import source_files

PLAIN = {name: os.environ[name] for name in ("PATH", "HOME")}
"""A shell's environment. `make test` exports the variables of our own Makefile, which a lab's would take."""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "my-study"
    assert main(["init", str(folder)]) == 0
    return folder


def test_it_has_the_reference_labs_files_and_is_a_lab(study: Path, repository: Path) -> None:
    assert find_lab(study / "tasks") == study
    for name in ("params.yaml", "dvc.yaml", "tasks/report.py", "flows/ablation.py", "infra/settings.env"):
        assert (study / name).read_bytes() == (repository / name).read_bytes(), name
    assert not (study / "params" / "study").exists() and not list(study.rglob("__pycache__"))


def test_it_has_a_name_a_pin_and_files_that_git_knows(study: Path) -> None:
    assert (study / "README.md").read_text().startswith("# my-study\n")
    assert f"skillpress[train,pipeline]=={__version__}" in (study / "requirements.txt").read_text()
    known = {str(file) for file in source_files(study)}
    assert {".gitignore", ".dvc/config", ".github/workflows/test.yml", "my_lab/number_line.py"} <= known
    workflow = yaml.safe_load((study / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["test"]["steps"][-1] == {"run": "make test"}


def test_its_deployments_run_its_own_experiment_and_comparison(study: Path) -> None:
    found = yaml.safe_load((study / "infra" / "prefect.yaml").read_text())["deployments"]
    experiment, ablation = (deployment["parameters"] for deployment in found)
    assert experiment == {"params": ["params/my_lab.yaml"]} and ablation["common"] == experiment["params"]
    for overlay in (*experiment["params"], *ablation["methods"]):
        assert (study / overlay).is_file(), overlay
    assert all((study / deployment["entrypoint"].split(":")[0]).is_file() for deployment in found)


def test_the_tests_of_its_environment_and_its_algorithm_pass(study: Path, repository: Path) -> None:
    environment = PLAIN | {"PYTHONPATH": str(repository)}
    command = ["make", f"PYTHON={sys.executable}", "test"]
    done = subprocess.run(command, cwd=study, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr


def test_its_makefile_says_which_python_it_needs(study: Path, tmp_path: Path) -> None:
    (study / "origin.mk").unlink()
    old = tmp_path / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for python in (str(old), "no-such-python", ""):
        command = ["make", f"BASE_PYTHON={python}", "check"]
        done = subprocess.run(command, cwd=study, env=PLAIN, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and not (study / ".venv").exists()
        assert f"Python 3.11 is needed, found '{python}'; name another: make BASE_PYTHON=..." in done.stderr


@pytest.mark.parametrize("target", ["run", "check"])
def test_a_misspelt_overlay_is_named_before_anything_is_installed(study: Path, target: str) -> None:
    (study / "origin.mk").unlink()
    command = ["make", "--no-print-directory", target, "PARAMS=params/my_lab.yaml params/gpro.yaml"]
    done = subprocess.run(command, cwd=study, env=PLAIN, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "PARAMS: there is no file params/gpro.yaml" in done.stderr
    assert not (study / ".venv").exists() and not (study / "mlruns").exists()


def test_make_uses_the_environment_that_wrote_the_lab_while_it_is_there(study: Path, tmp_path: Path) -> None:
    used = tmp_path / "python"
    used.write_text('#!/bin/sh\necho "used for $*"\n')
    used.chmod(0o755)
    command = ["make", "--no-print-directory", "check"]
    (study / "origin.mk").write_text(f"INSTALLED ?= {used}\n")
    env = PLAIN | {"PYTHON": "python-of-the-shell"}
    done = subprocess.run(command, cwd=study, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "used for -m skillpress.cli.command check --params params/my_lab.yaml\n"
    (study / "origin.mk").write_text(
        f"INSTALLED ?= {tmp_path / 'gone'}\nSKILLPRESS ?= skillpress @ file:///x\n"
    )
    done = subprocess.run(
        [*command, "--dry-run"], cwd=study, env=PLAIN, capture_output=True, text=True, check=True
    )
    assert "-m venv .venv" in done.stdout and "-r requirements.txt" in done.stdout
    assert done.stdout.count("'skillpress @ file:///x'") == 1
    assert f"{study}/.venv/bin/python -m skillpress" in done.stdout


def test_git_does_not_know_where_skillpress_came_from_on_this_machine(study: Path) -> None:
    assert (study / "origin.mk").is_file()
    assert Path("origin.mk") not in source_files(study)


def test_a_folder_that_holds_something_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "notes.txt"):
        assert main(["init", str(place)]) == exit_codes.USER_ERROR
        assert f"init: {place}: exists already and is not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
