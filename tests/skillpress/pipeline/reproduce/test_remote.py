"""Machines share results: a machine restores what another has in the remote, at the same revision only."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
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


def test_only_what_no_machine_has_done_is_run(
    machines: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = str(tmp_path / "remote")
    left, right, head = machines.values()
    (right / "params.yaml").write_text("value: 2\n")
    (head / "params.yaml").write_text("value: 2\n")
    for folder in (left, right, head):
        monkeypatch.chdir(folder)
        assert reproduce_with(remote) == 0
    assert ran(left) == ["shared", "differing"]
    assert ran(right) == ["differing"]
    assert ran(head) == []
    assert (head / "result").read_text() == (right / "result").read_text() == "source\nvalue: 2\n"


def lose_all(remote: Path) -> None:
    shutil.rmtree(remote)


def lose_files(remote: Path) -> None:
    """The record of runs stays, and names the lost files."""
    shutil.rmtree(remote / "files")


def lose_one(remote: Path) -> None:
    next(path for path in sorted(remote.glob("files/**/*")) if path.is_file()).unlink()


def cut_files(remote: Path) -> None:
    for path in remote.glob("files/**/*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(path.read_bytes()[:3])


@pytest.mark.parametrize(
    "lose",
    [
        lose_files,
        *(pytest.param(each, marks=pytest.mark.thorough) for each in (lose_all, lose_one, cut_files)),
    ],
)
def test_what_a_remote_has_lost_since_it_was_pushed_is_made_again(
    machines: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[Path], None],
) -> None:
    remote, left, head = tmp_path / "remote", machines["left"], machines["head"]
    monkeypatch.chdir(left)
    assert reproduce_with(str(remote)) == 0
    lose(remote)
    monkeypatch.chdir(head)
    assert reproduce_with(str(remote)) == 0
    assert (head / "result").read_bytes() == (left / "result").read_bytes()
    assert ran(head)


def test_a_remote_that_does_not_answer_is_named_and_the_results_are_kept(
    machines: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    remote, left = "http://127.0.0.1:9/remote", machines["left"]
    monkeypatch.chdir(left)
    assert reproduce_with(remote) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"with the remote {remote}: ") and told.endswith(
        "; what was computed is kept here, run again to share it"
    )
    assert (left / "result").read_text() == "source\nvalue: 1\n"
    assert ran(left) == ["shared", "differing"]


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
