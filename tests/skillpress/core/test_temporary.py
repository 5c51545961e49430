"""Folders of killed processes are removed by the next one; those of living ones never."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from skillpress.core.temporary import TemporaryFolder

HOLDS = """
import sys, tempfile, time
from skillpress.core.temporary import TemporaryFolder
tempfile.tempdir = sys.argv[1]
folder = TemporaryFolder("kind")
(folder.path / "inner").mkdir()
print(folder.path, flush=True)
time.sleep(600)
"""


@pytest.mark.heavy
def test_a_folder_is_removed_by_the_next_process_once_its_own_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        held = Path(owner.stdout.readline().strip())
        mine = TemporaryFolder("kind")
        assert held.is_dir() and mine.path.is_dir()
        owner.kill()
        owner.wait()
        other = TemporaryFolder("other")
        assert held.is_dir()
        second = TemporaryFolder("kind")
        assert not held.exists() and mine.path.is_dir()
    for each in (mine, second, other, other):
        each.remove()
    assert list(tmp_path.iterdir()) == []
