"""Designs: a game is determined by its settings and seed, byte for byte as TextWorld makes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.design import HARD, SIMPLE, GameSettings, design, is_trap
from skillpress.environments.textworld_cooking.games import GameCache
from skillpress.environments.textworld_cooking.tasks import describe

_DECLARED_ORDER = """
groups = (["fried", "roasted", "grilled"], ["chopped", "sliced", "diced"])
kept = (list(set(group) - {out}) == [word for word in group if word != out]
        for group in groups for out in [*group, "raw"])
raise SystemExit(not all(kept))
"""
"""Exits with 0 if plain sets of the designer's words keep their order."""
_UNPATCHED = """
import json, sys, textworld
from textworld.challenges.tw_cooking import cooking
from textworld.generator import compile_game
settings, seed, path = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
options = textworld.GameOptions()
options.seeds = seed
options.path = path
compile_game(cooking.make(settings, options), options)
"""


def hash_seed_of_the_declared_order() -> str:
    for seed in map(str, range(1000)):
        run = subprocess.run(
            [sys.executable, "-S", "-c", _DECLARED_ORDER], env={"PYTHONHASHSEED": seed}, check=False
        )
        if run.returncode == 0:
            return seed
    raise AssertionError("one of 64 hash seeds has this order")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("settings", "seed"), [(SIMPLE[0], 3), (SIMPLE[3], 123456789), (HARD, 2)], ids=["as-is", "both", "hard"]
)
def test_a_program_is_byte_for_byte_the_one_that_unpatched_textworld_compiles(
    settings: GameSettings, seed: int, tmp_path: Path, cooking_games: Path
) -> None:
    theirs = tmp_path / "game.z8"
    subprocess.run(
        [sys.executable, "-c", _UNPATCHED, json.dumps(settings.challenge()), str(seed), str(theirs)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed_of_the_declared_order()},
        check=True,
    )
    assert GameCache(cooking_games).program(settings, seed).read_bytes() == theirs.read_bytes()


@pytest.mark.thorough
def test_the_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from skillpress.environments.textworld_cooking.design import HARD
from skillpress.environments.textworld_cooking.games import GameCache
print(GameCache(Path(sys.argv[1])).program(HARD, 5))
"""
    found = []
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / hash_seed)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        )
        found.append(Path(run.stdout.strip().splitlines()[-1]).read_bytes())
    assert found[0] == found[1]


def test_textworld_itself_is_left_as_it_was() -> None:
    from textworld import GameMaker
    from textworld.challenges.tw_cooking import cooking
    from textworld.generator.data import KnowledgeBase

    before = (GameMaker.set_walkthrough, cooking.KnowledgeBase, cooking.make)
    design(SIMPLE[0], 0)
    assert (GameMaker.set_walkthrough, cooking.KnowledgeBase, cooking.make) == before
    assert cooking.KnowledgeBase is KnowledgeBase


def test_the_same_settings_and_seed_give_the_same_design() -> None:
    assert describe(HARD, 7) == describe(HARD, 7)
    assert describe(HARD, 7) != describe(HARD, 8)


def test_hard_games_have_two_ingredients_that_are_cooked_and_cut() -> None:
    for seed in range(5):
        ingredients = describe(HARD, seed).ingredients
        assert len(ingredients) == 2
        assert all(cooked != "raw" and cut != "uncut" for _, cooked, cut in ingredients)


def test_the_trap_is_a_cookbook_that_says_cook_where_nothing_must_be_cooked(trap: Task) -> None:
    assert is_trap(SIMPLE[0], [("egg", "fried", "uncut")])
    assert not is_trap(SIMPLE[0], [("egg", "raw", "uncut")])
    assert not is_trap(SIMPLE[3], [("egg", "fried", "uncut")])
    assert not any(action.startswith("cook ") for action in trap.spec["walkthrough"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"rooms": 1, "ingredients": 1, "cook": True}, "cut"),
        ({"rooms": 2, "ingredients": 1, "cook": True, "cut": True}, "rooms must be 1, 6, 9 or 12"),
        ({"rooms": 1, "ingredients": 9, "cook": True, "cut": True}, "ingredients 1 to 5"),
    ],
)
def test_settings_that_no_game_has_are_refused(spec: dict[str, int], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        GameSettings.from_spec(spec)
