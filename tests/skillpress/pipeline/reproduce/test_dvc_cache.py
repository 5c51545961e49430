"""A workspace shares the cache of its repository, wherever the user keeps it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dvc.config import Config

from skillpress.pipeline.reproduce.dvc_cache import cache_folder, cached_files, workspace_settings


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DVC repository without git, and without the settings of this machine's user."""
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "global"))
    folder = tmp_path / "repository"
    folder.mkdir()
    dvc(folder, "init", "--no-scm", "--quiet")
    return folder


def dvc(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=folder, check=True, timeout=60)


def of_workspace(repository: Path) -> Config:
    """What DVC reads in a workspace with these settings."""
    folder = repository / "workspaces" / "one" / ".dvc"
    folder.mkdir(parents=True)
    (folder / "config.local").write_text(workspace_settings(repository))
    return Config(dvc_dir=str(folder))


def test_without_settings_it_is_the_repositorys_own_folder(repository: Path) -> None:
    assert cache_folder(repository) == repository / ".dvc" / "cache"
    assert cached_files(repository) == repository / ".dvc" / "cache" / "files" / "md5"
    found = of_workspace(repository)
    assert found["core"]["no_scm"] and Path(found["cache"]["dir"]) == cache_folder(repository)


@pytest.mark.parametrize("level", ["--project", "--local", "--global"])
def test_a_cache_on_another_disk_is_shared_wherever_it_is_set(repository: Path, level: str) -> None:
    disk = repository.parent / "large disk"
    dvc(repository, "cache", "dir", level, str(disk))
    assert cache_folder(repository) == disk
    assert Path(of_workspace(repository)["cache"]["dir"]) == disk


def test_how_files_are_linked_is_taken_over(repository: Path) -> None:
    dvc(repository, "config", "--local", "cache.type", "hardlink,copy")
    dvc(repository, "config", "--local", "cache.protected", "true")
    found = of_workspace(repository)["cache"]
    assert found["type"] == ["hardlink", "copy"] and found["protected"]
