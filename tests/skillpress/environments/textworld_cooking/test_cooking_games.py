"""The cache of compiled games: complete games or none, generated again if damaged, shared by processes."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.environments.textworld_cooking.design import SIMPLE
from skillpress.environments.textworld_cooking.games import DESIGN, DIGEST, PROGRAM, GameCache, GameError
from skillpress.environments.textworld_cooking.parameters import GAMES_VARIABLE, CookingParameters

_GENERATE = """
import sys
from pathlib import Path
from skillpress.environments.textworld_cooking.design import SIMPLE
from skillpress.environments.textworld_cooking.games import GameCache
print(GameCache(Path(sys.argv[1])).program(SIMPLE[0], 11))
"""


def contents(program: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in program.parent.iterdir()}


def test_a_game_is_compiled_once_and_named_by_its_settings_and_seed(tmp_path: Path) -> None:
    cache = GameCache(tmp_path)
    program = cache.program(SIMPLE[0], 3)
    made = program.stat().st_mtime_ns
    assert set(contents(program)) == {PROGRAM, DESIGN, DIGEST}
    assert cache.program(SIMPLE[0], 3) == program
    assert program.stat().st_mtime_ns == made
    assert cache._place(SIMPLE[0], 4) != program.parent != cache._place(SIMPLE[1], 3)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "half"])
def test_a_damaged_game_is_generated_again(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = GameCache(tmp_path)
    program = cache.program(SIMPLE[0], 3)
    whole = contents(program)
    if damage == "truncated":
        program.write_bytes(whole[PROGRAM][:1000])
    elif damage == "foreign":
        program.with_name(DESIGN).write_text("{}")
    else:
        program.with_name(DIGEST).unlink()
    with caplog.at_level(logging.WARNING):
        assert contents(cache.program(SIMPLE[0], 3))[PROGRAM] == whole[PROGRAM]
    assert (f"{program.parent} is damaged; the game is generated again" in caplog.text) == (damage != "half")


@pytest.mark.slow
def test_two_processes_may_generate_the_same_game_at_once(tmp_path: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", _GENERATE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[0].strip().splitlines()[-1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1]
    assert set(contents(Path(said[0]))) == {PROGRAM, DESIGN, DIGEST}
    assert [
        path for path in tmp_path.rglob("*") if path.is_file() and path.parent != Path(said[0]).parent
    ] == []


def test_a_full_disk_leaves_no_half_game_and_says_so(small_disk: Path) -> None:
    with pytest.raises(StorageError, match=r"game\.z8: no space left on the device; free some"):
        GameCache(small_disk).program(SIMPLE[0], 3)
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == [DESIGN]


def test_a_compiler_that_cannot_write_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFORM_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(GameError, match=r"seed 3 cannot be compiled in .*MB free"):
        GameCache(tmp_path).program(SIMPLE[0], 3)
    assert not list(tmp_path.rglob(PROGRAM))


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(
        StorageError, match=r"file/.*cannot be written .*set environment\.games or \$SKILLPRESS_GAMES"
    ):
        GameCache(tmp_path / "file").program(SIMPLE[0], 3)


def test_the_folder_is_the_sections_or_the_environments_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    section = CookingParameters(name="textworld_cooking", max_steps=40)
    monkeypatch.delenv(GAMES_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert section.cache == Path("/caches/skillpress/games")
    monkeypatch.setenv(GAMES_VARIABLE, "/big/disk")
    assert section.cache == Path("/big/disk")
    assert section.model_copy(update={"games": "/mine"}).cache == Path("/mine")
