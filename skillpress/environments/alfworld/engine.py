"""One running game: alfworld's own engine, started without its loader.

``AlfredTWEnv`` requires ``traj_data.json`` beside every game and prints while it loads. It adds only the
names of things to TextWorld's PDDL engine (``AlfredDemangler``, used here without shuffling). An engine is
built once and loads one game after the other; building it copies a shared library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from mementos.core import _memento_cache
from tatsu.exceptions import ParseException
from textworld import EnvInfos
from textworld.envs.pddl.pddl import PddlEnv

from skillpress.environments.alfworld.engine_patches import apply_patches
from skillpress.environments.alfworld.games import GameError
from skillpress.environments.alfworld.translations import PddlError

_FIELDS = {"pddl_domain": str, "pddl_problem": str, "grammar": str, "walkthrough": list}

_LOAD_ERRORS = (
    AssertionError, AttributeError, LookupError, TypeError, ValueError, PddlError, ParseException, SystemExit
)  # fmt: skip
"""Exceptions of alfworld's parsers for a text that is not a game."""


@dataclass(frozen=True)
class Scene:
    """The engine's answer to a reset or a command."""

    feedback: str
    admissible: tuple[str, ...]
    """Every command that the engine would carry out, sorted."""
    won: bool


class GameEngine:
    """Plays one game at a time; identical commands give identical scenes."""

    def __init__(self) -> None:
        """Start the engine. The speed patches are applied to the whole process."""
        apply_patches()
        infos = EnvInfos(won=True, admissible_commands=True)
        self._engine = AlfredDemangler(PddlEnv(infos), shuffle=False)
        self._loaded: Path | None = None

    def reset(self, path: Path) -> Scene:
        """Start a game from its beginning. A game that is already loaded is not read again.

        Raises:
            GameError: the file is missing, damaged, or not an ALFWorld game.
        """
        if path != self._loaded:
            self._loaded = None
            game = read_game(path)
            _memento_cache.clear()  # TextWorld keeps every proposition of every game; equal ones suffice
            try:
                self._engine.load(game)
            except _LOAD_ERRORS as error:
                raise GameError(f"{path}: alfworld cannot load it ({error!r}); get it again") from error
            self._loaded = path
        return self._scene(self._engine.reset())

    def step(self, command: str) -> Scene:
        """Carry out a command."""
        state, _, _ = self._engine.step(command)
        return self._scene(state)

    @staticmethod
    def _scene(state: Mapping[str, Any]) -> Scene:
        return Scene(str(state["feedback"]), tuple(state["admissible_commands"]), bool(state["won"]))


def read_game(path: Path) -> dict[str, Any]:
    """Return the content of a game file.

    Raises:
        GameError: it is missing, not JSON, or not an ALFWorld game.
    """
    try:
        game = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GameError(f"{path}: cannot be read: {error.strerror or error}; get it again") from error
    except ValueError as error:
        raise GameError(f"{path}: damaged, not JSON ({error}); get it again") from error
    if not isinstance(game, dict) or "(domain alfred)" not in str(game.get("pddl_domain")):
        raise GameError(f"{path}: not an ALFWorld game (it has no pddl_domain named alfred)")
    for field, kind in _FIELDS.items():
        if not isinstance(game.get(field), kind):
            raise GameError(f"{path}: {field} is {type(game.get(field)).__name__}, must be {kind.__name__}")
    return game
