"""The official games: where they are, whether they are complete, and the information in a game's name.

The data folder contains ``json_2.1.1`` as written by ``alfworld-download``, or the archive
``json_2.1.1.tar.xz``. The archive is unpacked once into the cache (``$XDG_CACHE_HOME/skillpress``, else
``~/.cache/skillpress``), under the hash of its content. An existing folder there is always complete. If two
processes unpack at the same time, the second finds the first one's result.

A game's path contains everything that a task needs to know about it,

    train/pick_clean_then_place_in_recep-Mug-None-Cabinet-22/trial_T2019…/game.tw-pddl

(task type, object, movable receptacle, receptacle or lamp, scene), so tasks are made without opening any
game.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skillpress.core.errors import StorageError, UserError
from skillpress.core.storage import directory_made_once

TREE = "json_2.1.1"
ARCHIVE = f"{TREE}.tar.xz"
COUNTS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
"""Number of official games per part; the last two are the paper's IID and OOD test games."""
TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)

_NAME = re.compile(r"(?P<type>[a-z_]+)-(?P<object>\w+)-(?P<movable>\w+)-(?P<target>\w+)-(?P<scene>\d+)")


class GameError(UserError):
    """The games are missing or not the official ones; the message says where and what to do."""


@dataclass(frozen=True)
class Game:
    """The information in a game's path."""

    path: str
    """Relative to the tree: ``train/<task>/<trial>/game.tw-pddl``."""
    task_type: str
    target_object: str
    """Class of the object to pick, such as ``Mug``."""
    destination: str
    """Class of the receptacle to put it in, or of the lamp to examine it under."""
    scene: int


def describe(path: str) -> Game:
    """Return the game at a path relative to the tree.

    Raises:
        GameError: no official game has such a path.
    """
    parts = path.split("/")
    match = _NAME.fullmatch(parts[1]) if len(parts) == 4 else None
    if match is None or match["type"] not in TASK_TYPES:
        raise GameError(
            f"{path}: not an ALFWorld game; a path is <part>/<task type>-<object>-<movable>-<receptacle>-"
            "<scene>/<trial>/game.tw-pddl"
        )
    return Game(
        path=path,
        task_type=match["type"],
        target_object=match["object"],
        destination=match["target"],
        scene=int(match["scene"]),
    )


def game_paths(tree: Path, part: str) -> list[str]:
    """The paths of a part's games, sorted.

    Raises:
        GameError: their number differs from the official release.
    """
    paths = sorted(path.relative_to(tree).as_posix() for path in (tree / part).glob("*/*/game.tw-pddl"))
    if len(paths) != COUNTS[part]:
        raise GameError(
            f"{tree / part}: holds {len(paths)} games, the official release has {COUNTS[part]}; "
            "name a folder that alfworld-download has filled"
        )
    return paths


def find_tree(data: str) -> Path:
    """Return the folder ``json_2.1.1`` of a data folder; unpack the archive if needed.

    Args:
        data: the section's ``data``; if empty, the environment variable ALFWORLD_DATA is used.

    Raises:
        GameError: no folder is named, or it holds no games.
        StorageError: the archive is damaged or there is no room to unpack it.
    """
    named = data or os.environ.get("ALFWORLD_DATA", "")
    if not named:
        raise GameError(
            "environment.data: is empty and ALFWORLD_DATA is not set; run `alfworld-download` and name "
            "the folder it filled (by default ~/.cache/alfworld) in either"
        )
    folder = Path(named).expanduser()
    for tree in (folder, folder / TREE):
        if (tree / "train").is_dir():
            return tree
    if (folder / ARCHIVE).is_file():
        return unpacked(folder / ARCHIVE)
    raise GameError(
        f"environment.data: {folder} holds neither {TREE}/train nor {ARCHIVE}; get the games with "
        "`alfworld-download`, or name the folder they are in"
    )


@cache
def unpacked(archive: Path) -> Path:
    """Return the tree of an archive; unpack it into the cache unless that was done before."""
    with archive.open("rb") as opened:
        digest = hashlib.file_digest(opened, "blake2b").hexdigest()[:16]
    home = cache_folder() / f"games-{digest}"
    if not home.is_dir():
        _unpack(archive, home)
    return home / TREE


def cache_folder() -> Path:
    """The folder of unpacked games and translations; it may be deleted at any time between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "skillpress" / "alfworld"


def _unpack(archive: Path, home: Path) -> None:
    """Unpack beside ``home``, then rename. A process that finishes second deletes its own copy."""
    try:
        with directory_made_once(home) as temporary, tarfile.open(archive) as opened:
            opened.extraction_filter = lambda member, path: member  # _members has looked at each
            opened.extractall(temporary, _members(opened))
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise StorageError(f"{archive}: damaged ({error}); get it again with alfworld-download") from error


def _members(opened: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the files and folders below ``json_2.1.1``, changed to belong to the user.

    tarfile's filter "data" does much the same, from Python 3.11.4 on. Debian 12 has 3.11.2.

    Raises:
        tarfile.TarError: the archive holds anything else.
    """
    for member in opened:
        parts = Path(member.name).parts
        if parts[:1] != (TREE,) or ".." in parts or not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name} is not a file or folder of {TREE}")
        member.mode = 0o755 if member.isdir() else 0o644
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        yield member
