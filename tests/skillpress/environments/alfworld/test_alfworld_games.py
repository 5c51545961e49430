"""The official games are found, unpacked once, counted, and described by their paths."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.environments.alfworld.games import (
    COUNTS,
    GameError,
    describe,
    find_tree,
    game_paths,
    unpacked,
)  # fmt: skip

PATH = "train/pick_clean_then_place_in_recep-ButterKnife-None-SideTable-21/trial_T2019/game.tw-pddl"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with an archive of one game."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    game = tmp_path / "json_2.1.1" / PATH
    game.parent.mkdir(parents=True)
    game.write_text("{}")
    (tmp_path / "data").mkdir()
    made = tmp_path / "data" / "json_2.1.1.tar.xz"
    with tarfile.open(made, "w:xz") as opened:
        opened.add(tmp_path / "json_2.1.1", "json_2.1.1")
    unpacked.cache_clear()
    return made


def test_a_path_says_what_the_task_is() -> None:
    game = describe(PATH)
    assert (game.task_type, game.target_object) == ("pick_clean_then_place_in_recep", "ButterKnife")
    assert (game.destination, game.scene) == ("SideTable", 21)


@pytest.mark.parametrize(
    "path",
    ["game.tw-pddl", "train/stack_things-Mug-None-Bed-1/trial/game.tw-pddl", "train/pick/trial/game.z8", ""],
)
def test_another_path_is_no_game(path: str) -> None:
    with pytest.raises(GameError, match="not an ALFWorld game"):
        describe(path)


def test_without_a_folder_the_error_says_how_to_get_the_games(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(GameError, match="ALFWORLD_DATA is not set; run `alfworld-download`"):
        find_tree("")
    with pytest.raises(
        GameError, match=r"holds neither json_2\.1\.1/train nor json_2\.1\.1\.tar\.xz.*alfworld-download"
    ):
        find_tree(str(tmp_path))


def test_the_variable_names_the_folder_where_the_section_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "json_2.1.1" / "train").mkdir(parents=True)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert find_tree("") == tmp_path / "json_2.1.1"


def test_the_official_counts_hold(tree: Path) -> None:
    assert {part: len(game_paths(tree, part)) for part in COUNTS} == COUNTS


def test_too_few_games_are_refused(archive: Path) -> None:
    with pytest.raises(
        GameError, match=r"train: holds 1 games, the official release has 3553.*alfworld-download"
    ):
        game_paths(find_tree(str(archive.parent)), "train")


def test_two_processes_that_unpack_at_once_share_one_whole_tree(archive: Path, tmp_path: Path) -> None:
    command = (
        "from pathlib import Path; from skillpress.environments.alfworld.games import unpacked;"
        f"print(unpacked(Path({str(archive)!r})))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = {process.communicate()[0].strip() for process in processes}
    assert len(answers) == 1
    assert (Path(answers.pop()) / PATH).read_text() == "{}"
    assert len(list((tmp_path / "cache/skillpress/alfworld").iterdir())) == 1, "a half tree was left behind"


def test_a_tree_that_is_there_is_not_unpacked_again(archive: Path) -> None:
    marked = unpacked(archive) / "marked"
    marked.touch()
    unpacked.cache_clear()
    assert (unpacked(archive) / "marked").exists()


def test_a_damaged_archive_leaves_nothing_behind(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StorageError, match=r"json_2\.1\.1\.tar\.xz: damaged"):
        unpacked(archive)
    assert not list((tmp_path / "cache/skillpress/alfworld").iterdir())


@pytest.mark.parametrize("name", ["json_2.1.1/../../stray", "/stray", "other/stray", "json_2.1.1/link"])
def test_an_archive_that_would_write_elsewhere_is_refused(archive: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(archive, "w:xz") as opened:
        stray = tarfile.TarInfo(name)
        if name.endswith("link"):
            stray.type, stray.linkname = tarfile.SYMTYPE, str(tmp_path)
        opened.addfile(stray)
    with pytest.raises(StorageError, match=rf"{name} is not a file or folder of json_2\.1\.1"):
        unpacked(archive)
    assert not list(tmp_path.rglob("stray"))
    assert not list((tmp_path / "cache/skillpress/alfworld").iterdir())


def test_an_archive_that_finds_no_room_says_so_and_leaves_nothing_behind(
    archive: Path, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "json_2.1.1" / PATH
    large.write_bytes(bytes(200_000))
    with tarfile.open(archive, "w:xz") as opened:
        opened.add(tmp_path / "json_2.1.1", "json_2.1.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    with pytest.raises(StorageError, match=r"games-.*: no space left on the device"):
        unpacked(archive)
    assert not list((small_disk / "skillpress/alfworld").iterdir())
