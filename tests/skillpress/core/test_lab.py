"""Which folder is the lab, for a process inside it, below it, or outside any lab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillpress.core import lab


def make_lab(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for mark in lab.MARKS:
        (folder / mark).touch()
    return folder


def test_it_is_the_nearest_folder_with_parameters_and_a_graph(tmp_path: Path) -> None:
    outer, inner = make_lab(tmp_path), make_lab(tmp_path / "workspaces" / "grpo")
    assert lab.find_lab(inner / "results") == inner
    assert lab.find_lab(tmp_path / "docs") == outer
    (inner / "dvc.yaml").unlink()
    assert lab.find_lab(inner) == outer


def test_outside_of_any_it_is_the_named_one_and_else_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    named = make_lab(tmp_path / "mine")
    monkeypatch.setenv(lab.VARIABLE, str(named))
    assert lab.find_lab(tmp_path) == named
    assert lab.find_lab(make_lab(tmp_path / "other")) == tmp_path / "other", "who is in a lab means that one"
    monkeypatch.delenv(lab.VARIABLE)
    assert lab.find_lab(tmp_path) == repository


def test_without_a_lab_files_are_the_reference_labs(tmp_path: Path, repository: Path) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "skillpress").symlink_to(repository / "skillpress")
    program = (
        "from skillpress.core import lab\n"
        "from skillpress.pipeline.exit_codes import USER_ERROR\n"
        "print(lab.LAB, lab.ROOT, lab.lab_file('params.yaml'))\n"
        "try:\n    lab.need_lab()\nexcept lab.NoLabError as error:\n    print(error)\n"
    )
    (package / "infra").symlink_to(repository / "infra")
    variables = {**os.environ, "PYTHONPATH": str(package)}
    variables.pop(lab.VARIABLE, None)
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said[0] == f"None {tmp_path} {package / 'params.yaml'}"
    assert said[1].startswith("no lab was found here") and "skillpress init DIR" in said[1]


def test_a_lab_has_its_own_files_and_the_reference_labs_where_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    monkeypatch.setattr(lab, "ROOT", make_lab(tmp_path))
    assert lab.lab_file("params.yaml") == tmp_path / "params.yaml"
    assert lab.lab_file("params/paper_countdown.yaml") == repository / "params" / "paper_countdown.yaml"
