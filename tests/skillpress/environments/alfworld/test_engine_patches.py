"""The patched engine gives the same answers as the original engine, byte by byte, in whole games."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import fast_downward
import pytest
from textworld.envs.pddl import logic, textgen

from skillpress.core.errors import StorageError
from skillpress.environments.alfworld import engine_patches, translations
from skillpress.environments.alfworld.engine import GameEngine
from skillpress.environments.alfworld.engine_patches import (
    PATCHES,
    UnknownEngineError,
    apply_patches,
    patched,
)
from skillpress.environments.alfworld.games import game_paths
from tests.support.environments import alfworld_transcripts
from tests.support.environments.alfworld_transcripts import Transcript, games_per_type, play
from tests.support.programs import importing


@cache
def stock(path: Path) -> Transcript:
    with patched(()):
        return play(path)


@pytest.fixture
def bathroom(tree: Path) -> Path:
    """A game with few receptacles, since the original engine is slow."""
    return tree / next(path for path in game_paths(tree, "train") if "ToiletPaper-None-Toilet-4" in path)


@pytest.mark.parametrize("name", PATCHES)
def test_each_patch_alone_changes_no_byte(name: str, bathroom: Path) -> None:
    with patched([name]):
        assert play(bathroom) == stock(bathroom)


def test_a_game_begins_anew_however_often_it_was_played(bathroom: Path) -> None:
    """The changes made by a play do not appear at the beginning of the next one, in this engine or
    another."""
    with patched(PATCHES):
        assert [play(bathroom) for _ in range(3)] == [stock(bathroom)] * 3
        engine = GameEngine()
        scenes = []
        for _ in range(2):
            first = engine.reset(bathroom)
            scenes.append([first, *(engine.step(command) for command in first.admissible[:20])])
    assert scenes[0] == scenes[1]


def test_a_command_is_worded_once_for_all_environments_of_a_process(bathroom: Path) -> None:
    worded: list[str] = []

    with patched(()), pytest.MonkeyPatch.context() as monkeypatch:
        derive = textgen.ContextSensitiveGrammar.derive

        def noted(grammar: Any, start: str, context: Mapping[str, Any]) -> str:
            if "#" not in start:
                worded.append(start)
            return str(derive(grammar, start, context))

        monkeypatch.setattr(textgen.ContextSensitiveGrammar, "derive", noted)
        with patched(PATCHES):
            first = GameEngine().reset(bathroom)
            assert len(worded) == len(first.admissible)
            again = GameEngine().reset(bathroom)
    assert again == first
    assert len(worded) == len(first.admissible)


def test_all_patches_together_change_no_byte(tree: Path) -> None:
    won = 0
    for path in games_per_type(tree, "valid_unseen", 1)[:2]:
        expected = stock(tree / path)
        with patched(PATCHES):
            assert play(tree / path) == expected
        won += any(scene[2] for scene in expected)
    assert won, "no game was played to its end"


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["train", "valid_seen", "valid_unseen"])
def test_forty_two_games_of_all_types_are_the_same(tree: Path, part: str) -> None:
    paths = games_per_type(tree, part, {"train": 3, "valid_seen": 2, "valid_unseen": 2}[part], seed=1)
    assert len(paths) in (12, 18)
    won = 0
    for path in paths:
        expected = stock(tree / path)
        with patched(PATCHES):
            assert play(tree / path) == expected, path
        won += any(scene[2] for scene in expected)
    assert won > len(paths) / 2


def test_a_translation_read_from_the_disk_plays_the_same(
    bathroom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with patched(PATCHES):
        translations.translated.cache_clear()
        assert play(bathroom) == stock(bathroom)
        (kept,) = tmp_path.rglob("*.sas.zlib")
        written = kept.stat().st_mtime_ns
        translations.translated.cache_clear()
        assert play(bathroom) == stock(bathroom)
        assert kept.stat().st_mtime_ns == written, "the kept translation was not used"
        kept.write_bytes(b"damaged")
        translations.translated.cache_clear()
        assert play(bathroom) == stock(bathroom)
        assert kept.read_bytes() != b"damaged", "a damaged translation must be made again"


def test_a_full_disk_ends_the_start_of_a_game_with_a_line_and_room_lets_it_go_on(
    bathroom: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb") as opened:
        while opened.write(bytes(4096)):
            opened.flush()
    with patched(PATCHES):
        translations.translated.cache_clear()
        with pytest.raises(StorageError, match=r"\.sas\.zlib: no space left on the device"):
            GameEngine().reset(bathroom)
        assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["filler"]
        filler.unlink()
        assert play(bathroom) == stock(bathroom)
        assert list(small_disk.rglob("*.sas.zlib"))


def test_what_is_played_does_not_depend_on_the_process(bathroom: Path) -> None:
    def elsewhere(hash_seed: str) -> str:
        command = [
            sys.executable,
            alfworld_transcripts.__file__,
            "patched",
            str(bathroom),
        ]
        environment = {**importing(), "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    first = elsewhere("1")
    assert first == elsewhere("2")
    assert len(first) > 1000


def test_the_engine_is_its_own_again_after_the_block() -> None:
    def engine() -> list[object]:
        return [
            fast_downward.pddl2sas, fast_downward.load_lib, textgen._parse_and_convert, textgen.deepcopy,
            textgen.copy_context, textgen.ContextSensitiveGrammar.derive, logic._parse_and_convert,
            logic.PddlState.replan, logic.PddlState.__init__, vars(logic.textworld.logic.State)["facts"],
            vars(logic.textworld.logic).get("sorted"),
        ]  # fmt: skip

    with patched(()):
        before = engine()
        with patched(PATCHES):
            inside = engine()
        assert all(one is not other for one, other in zip(before, inside, strict=True))
        assert engine() == before


def test_an_engine_that_was_not_compared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine_patches.KNOWN_VERSIONS, "textworld", "1.6.2")
    with pytest.raises(UnknownEngineError, match=r"textworld is 1\.7\.0.*1\.6\.2 only"), patched(PATCHES):
        pass
    monkeypatch.setattr(engine_patches, "_applied", {})
    with pytest.raises(UnknownEngineError, match=r"install textworld==1\.6\.2"):
        apply_patches()


def test_the_planner_that_was_taken_out_says_so(bathroom: Path) -> None:
    with patched(PATCHES):
        state = logic.PddlState.__new__(logic.PddlState)
        with pytest.raises(RuntimeError, match="no planner; use a game's stored walkthrough"):
            state.replan({})


def test_the_command_line_is_left_as_it_was(bathroom: Path) -> None:
    arguments = list(sys.argv)
    translations.translated.cache_clear()
    with patched(PATCHES):
        play(bathroom, detours=0)
    assert sys.argv == arguments
