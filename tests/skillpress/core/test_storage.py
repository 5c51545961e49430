"""Files are whole or absent, and errors name the file."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.core.storage import (
    atomic_directory,
    atomic_path,
    directory_made_once,
    make_folder,
    make_private_file,
    private,
    private_folder,
    read_json,
    read_schema,
    remove_tree,
    sweep,
    write_json,
    write_text,
)


def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_debris(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("ne")
        raise RuntimeError("power cut")
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_a_full_disk_is_said_plainly_and_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "results.json"
    write_json(target, {"kept": 1})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"results\.json: no space left on the device; free some"):
        write_json(target, {"kept": 2})
    assert read_json(target) == {"kept": 1}


def test_a_folder_is_replaced_as_a_whole_or_kept(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with atomic_directory(target) as temporary:
        (temporary / "a").write_text("1")
    with pytest.raises(RuntimeError), atomic_directory(target) as temporary:
        (temporary / "b").write_text("2")
        raise RuntimeError("killed")
    assert [p.name for p in target.iterdir()] == ["a"]
    with atomic_directory(target) as temporary:
        (temporary / "b").write_text("2")
    assert [p.name for p in target.iterdir()] == ["b"] and list(tmp_path.iterdir()) == [target]


def test_of_two_that_make_a_folder_the_firsts_stays_and_the_seconds_is_thrown_away(tmp_path: Path) -> None:
    target = tmp_path / "made"
    with directory_made_once(target) as late:
        (late / "file").write_text("second")
        with directory_made_once(target) as early:
            (early / "file").write_text("first")
    with pytest.raises(RuntimeError), directory_made_once(tmp_path / "other") as failed:
        raise RuntimeError(str(failed))
    assert (target / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize(("content", "message"), [(None, "no such file"), ("{", "not valid JSON")])
def test_unreadable_json_is_refused_by_name(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(StorageError, match=rf"x\.json: {message}"):
        read_json(path)


@pytest.mark.parametrize("content", ['{"schema": "x/1"}', "[1]", "{}"])
def test_json_of_another_schema_is_refused_with_the_way_out(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(StorageError, match=r"x\.json: schema is .*, this version reads 'x/2'; fit it again"):
        read_schema(path, "x/2", "fit it again")


KILLED = """
import os, shutil, signal, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from skillpress.core import storage
target, place = Path(sys.argv[1]), sys.argv[2]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if place == "file":
    with storage.atomic_path(target) as temporary:
        temporary.write_text("half")
        die()
with storage.atomic_directory(target) as temporary:
    (temporary / "a").write_text("1")
    if place == "folder":
        die()
    shutil.rmtree = die  # while the old folder is removed
"""


@pytest.mark.kills
@pytest.mark.parametrize("place", ["file", "folder", "old folder"])
def test_what_a_killed_writer_leaves_beside_its_file_is_swept_up_and_nothing_else(
    place: str, tmp_path: Path, repository: Path
) -> None:
    target = tmp_path / "policy"
    if place == "old folder":
        with atomic_directory(target) as temporary:
            (temporary / "a").write_text("0")
    for other in (".policy", "policy.txt", ".base.x1"):
        (tmp_path / other).write_text("not mine")
    before = {path.name for path in tmp_path.iterdir()}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(target), place],
        env={**os.environ, "PYTHONPATH": str(repository)}, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert len({path.name for path in tmp_path.iterdir()} - before) == 1
    sweep(target)
    assert {path.name for path in tmp_path.iterdir()} == before
    if place == "old folder":
        assert (target / "a").read_text() == "1"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_what_may_hold_secrets_can_be_read_by_its_owner_alone(tmp_path: Path, usual_umask: None) -> None:
    with atomic_path(tmp_path / "new" / "private", private=True) as temporary:
        assert mode(temporary) == 0o600, "at no moment can others read it"
    assert (mode(tmp_path / "new"), mode(tmp_path / "new" / "private")) == (0o700, 0o600)
    write_text(tmp_path / "results" / "table.md", "to be shown")
    assert (mode(tmp_path / "results"), mode(tmp_path / "results" / "table.md")) == (0o755, 0o644)
    with open(tmp_path / "log", "a", opener=private) as log:
        log.write("said")
    assert mode(tmp_path / "log") == 0o600


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_all_files_of_a_database_are_private_while_it_is_written(
    journal: str, tmp_path: Path, usual_umask: None
) -> None:
    file = tmp_path / "any.db"
    make_private_file(file)
    make_private_file(file)
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"PRAGMA journal_mode={journal}")
        database.execute("BEGIN IMMEDIATE")
        database.execute("CREATE TABLE secrets (value TEXT)")
        assert len(list(tmp_path.iterdir())) > 1
        assert {mode(one) for one in tmp_path.iterdir()} == {0o600}


def test_a_folder_that_its_owner_has_opened_stays_open(tmp_path: Path, usual_umask: None) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    make_folder(tmp_path / "shared", private=True)
    assert mode(tmp_path / "shared") == 0o755


def test_a_folder_that_another_user_could_have_filled_is_refused(tmp_path: Path) -> None:
    assert private_folder(tmp_path / "own").stat().st_mode & 0o777 == 0o700
    assert private_folder(tmp_path / "own") == tmp_path / "own"
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    planted = [tmp_path / "open", tmp_path / "link"]
    if os.geteuid() == 0:
        (tmp_path / "other").mkdir(mode=0o700)
        os.chown(tmp_path / "other", 65534, 65534)
        planted.append(tmp_path / "other")
    for folder in planted:
        with pytest.raises(StorageError, match="another user may have put files there"):
            private_folder(folder)


def test_a_tree_is_removed_whatever_its_depth_names_and_permissions(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    inner = os.open(top, os.O_RDONLY)
    for _ in range(1500):  # deeper than Python's stack, and than any path can name
        os.mkdir("d" * 200, dir_fd=inner)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=inner)
        os.close(inner)
        inner = deeper
    os.mkdir("closed", 0, dir_fd=inner)
    os.symlink(str(tmp_path), "link", dir_fd=inner)
    os.close(inner)
    (top / "closed").mkdir()
    (top / "closed" / "file").touch()
    (top / "closed").chmod(0)
    (top / os.fsdecode(b"\xff")).touch()
    (tmp_path / "kept").touch()
    (top / "link").symlink_to(tmp_path)
    remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    remove_tree(top)


def test_a_tree_that_others_remove_as_well_is_gone_and_nobody_fails(tmp_path: Path) -> None:
    """An engine's failure ends a run whose episodes are still removing their folders."""
    top = tmp_path / "top"
    for episode in range(40):
        for depth in range(5):
            folder = top.joinpath(str(episode), *"abcde"[: depth + 1])
            folder.mkdir(parents=True)
            (folder / "file").touch()
    mine = [*top.iterdir(), top]
    with ThreadPoolExecutor(len(mine)) as pool:
        list(pool.map(remove_tree, mine))
    assert not top.exists()
