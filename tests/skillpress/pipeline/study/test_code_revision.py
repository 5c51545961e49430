"""A study that records a run does not thereby change the code of its next run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skillpress.pipeline import revision
from skillpress.pipeline.study import record


def test_only_files_outside_of_pages_and_records_make_the_code_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in ("docs/study.md", "studies/study/runs.json", "tasks/train.py")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("as committed\n")
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    for module in (record, revision):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    committed = record.code_revision()
    assert len(committed) == 40
    for file, same in zip(files, (True, True, False), strict=True):
        file.write_text("changed\n")
        assert record.code_revision() == (committed if same else f"{committed}-dirty")
