"""Compiled games, in a cache that can be deleted at any time.

A game is named by the hash of its settings, its seed and TextWorld's version. It consists of three files:
``game.json`` (the design), ``game.z8`` (the program for the Z-machine) and ``digest``, which is written last.
Each file is replaced atomically. Two processes that generate the same game write the same bytes, so neither
has to wait for the other. A game whose digest does not match is generated again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import textworld
from textworld.generator import CouldNotCompileGameError, compile_game

from skillpress.core.errors import StorageError, UserError
from skillpress.core.storage import atomic_path, write_text
from skillpress.environments.textworld_cooking.design import GameSettings, design
from skillpress.environments.textworld_cooking.parameters import GAMES_VARIABLE

_LOG = logging.getLogger(__name__)
PROGRAM, DESIGN, DIGEST = "game.z8", "game.json", "digest"


class GameError(UserError):
    """A game could not be generated; the message says which, why, and what would help."""


@dataclass(frozen=True)
class GameCache:
    """The compiled games in a folder."""

    folder: Path

    def program(self, settings: GameSettings, seed: int) -> Path:
        """Return the program of a game; its design is in the same folder. It is generated if needed (0.5 s).

        Raises:
            GameError: the compiler failed.
            StorageError: the folder cannot be written, or its disk is full; no partial game is left.
        """
        place = self._place(settings, seed)
        state = _state(place)
        if state == "damaged":
            _LOG.warning("%s is damaged; the game is generated again", place)
        if state != "whole":
            _generate(settings, seed, place)
        return place / PROGRAM

    def _place(self, settings: GameSettings, seed: int) -> Path:
        name = json.dumps([textworld.__version__, settings.challenge(), seed], sort_keys=True)
        key = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        return self.folder / key[:2] / key


def _state(place: Path) -> str:
    """``whole``, ``missing`` or ``damaged``."""
    try:
        known = (place / DIGEST).read_text(encoding="ascii", errors="replace")
        found = _digest((place / DESIGN).read_bytes(), (place / PROGRAM).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    return "whole" if found == known else "damaged"


def _digest(design_bytes: bytes, program: bytes) -> str:
    inner = hashlib.blake2b(design_bytes).digest() + hashlib.blake2b(program).digest()
    return hashlib.blake2b(inner, digest_size=16).hexdigest()


def _generate(settings: GameSettings, seed: int, place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="skillpress-game-") as workshop:
        design_bytes, program = _compile(settings, seed, Path(workshop))
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / DIGEST).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"{place}: cannot be written ({error.strerror}); set environment.games or ${GAMES_VARIABLE} to a "
            "folder that can"
        ) from error
    for name, content in ((DESIGN, design_bytes), (PROGRAM, program)):
        with atomic_path(place / name) as temporary:
            temporary.write_bytes(content)
    write_text(place / DIGEST, _digest(design_bytes, program))


def _compile(settings: GameSettings, seed: int, workshop: Path) -> tuple[bytes, bytes]:
    """(design, program) of a game, compiled in its own folder."""
    options = textworld.GameOptions()
    options.path = str(workshop / PROGRAM)
    try:
        compile_game(design(settings, seed), options)
        return (workshop / DESIGN).read_bytes(), (workshop / PROGRAM).read_bytes()
    except (CouldNotCompileGameError, OSError) as error:
        free = shutil.disk_usage(workshop.parent).free // 2**20
        raise GameError(
            f"game with {settings} and seed {seed} cannot be compiled in {workshop.parent} "
            f"({free} MB free there; a game takes 10 while it is compiled): {error}"
        ) from error
