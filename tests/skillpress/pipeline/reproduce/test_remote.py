"""Machines share results: a machine restores what another has in the remote, at the same revision only."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from dvc.repo import Repo

from skillpress.pipeline import exit_codes
from skillpress.pipeline.reproduce import __main__ as reproduce
from skillpress.pipeline.reproduce.remote import RevisionError, check_revision, reproduce_with
from skillpress.pipeline.revision import revision

STAGES = """
stages:
  shared:
    cmd: echo shared >> ran && cp source made
    deps: [source]
    outs: [made]
  differing:
    cmd: echo differing >> ran && cat made params.yaml > result
    deps: [made]
    params: [value]
    outs: [result]
"""


@pytest.fixture
def machines(tmp_path: Path) -> dict[str, Path]:
    """Three folders with the same stages, each with its own cache."""
    found = {}
    for name in ("left", "right", "head"):
        folder = found[name] = tmp_path / name
        folder.mkdir()
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        Repo.init(str(folder)).close()
        (folder / "dvc.yaml").write_text(STAGES)
        (folder / "source").write_text("source\n")
        (folder / "params.yaml").write_text("value: 1\n")
    return found


def ran(folder: Path) -> list[str]:
    file = folder / "ran"
    return file.read_text().split() if file.exists() else []


def test_only_what_no_machine_has_done_is_run_and_a_lock_brings_the_rest(
    machines: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = str(tmp_path / "remote")
    left, right, head = machines.values()
    (right / "params.yaml").write_text("value: 2\n")
    (head / "params.yaml").write_text("value: 2\n")
    for folder, lock in ((left, None), (right, None), (head, right / "dvc.lock")):
        monkeypatch.chdir(folder)
        assert reproduce_with(remote, lock=lock) == 0
    assert ran(left) == ["shared", "differing"]
    assert ran(right) == ["differing"]
    assert ran(head) == []
    assert (head / "result").read_text() == (right / "result").read_text() == "source\nvalue: 2\n"


def test_a_stage_that_fails_is_told(
    machines: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (machines["left"] / "dvc.yaml").write_text(STAGES.replace("cat made", "false && cat made"))
    monkeypatch.chdir(machines["left"])
    assert reproduce_with(str(tmp_path / "remote")) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert "failed to reproduce 'differing'" in told and told.endswith("exited with 1")


def test_another_revision_is_refused_and_both_are_named() -> None:
    check_revision(revision())
    with pytest.raises(RevisionError, match=f"is at {revision()}, and the experiment is to run at 0000"):
        check_revision("0000")


def test_a_command_for_another_revision_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--seed", "1", "--revision", "0000"]) == exit_codes.USER_ERROR
    assert "nothing was run" in capsys.readouterr().err
