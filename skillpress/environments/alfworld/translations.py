"""The planner's input (SAS), cached for every game that was translated once.

Translating a game's PDDL into SAS takes 0.05 to 0.5 s, longer than playing the episode. The text depends only
on the game. So it is kept in memory for recently played games and, compressed (10 to 80 kB), in the cache
folder under the hash of the PDDL. Parsing the PDDL itself takes 5 ms and is repeated each time.
"""

from __future__ import annotations

import functools
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import fast_downward

from skillpress.core.storage import atomic_path
from skillpress.environments.alfworld.games import cache_folder


@contextmanager
def _translator_command_line() -> Iterator[None]:
    """Replace the command line, which the translator reads and overwrites, even when it is imported."""
    arguments, sys.argv = sys.argv, ["translate.py", "domain", "task"]
    try:
        yield
    finally:
        sys.argv = arguments


with _translator_command_line():
    from fast_downward.translate import normalize
    from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions

PddlError = lisp_parser.ParseError
IN_MEMORY = 16
"""Number of games whose translation is held in memory (0.2 to 4 MB each)."""

_translate = fast_downward.pddl2sas


@functools.lru_cache(IN_MEMORY)
def translated(domain: str, problem: str) -> tuple[Any, str]:
    """Return (task, SAS) as ``fast_downward.pddl2sas(domain, problem)`` does, without optimisation.

    Raises:
        StorageError: the cache folder cannot be written.
    """
    path = translation_path(domain, problem)
    text = _read(path)
    if text is not None:
        return _parsed(domain, problem), text
    with _translator_command_line():
        task, text = _translate(domain, problem)
    with atomic_path(path) as temporary:
        temporary.write_bytes(zlib.compress(text.encode()))
    return task, text


def translation_path(domain: str, problem: str) -> Path:
    """The path of a game's cached translation."""
    digest = hashlib.blake2b(f"{domain}\x1f{problem}".encode(), digest_size=12).hexdigest()
    return cache_folder() / "translations" / f"{digest}.sas.zlib"


def _read(path: Path) -> str | None:
    """The cached text; None if there is none or it is damaged."""
    try:
        return zlib.decompress(path.read_bytes()).decode()
    except (FileNotFoundError, zlib.error):
        return None


def _parsed(domain: str, problem: str) -> Any:
    """The first half of ``pddl2sas``: the normalised PDDL task."""
    with redirect_stdout(io.StringIO()):  # it warns of facts that are stated twice
        task = parsing_functions.parse_task(
            lisp_parser.parse_nested_list(domain.split("\n")),
            lisp_parser.parse_nested_list(problem.split("\n")),
        )
        normalize.normalize(task)
    return task
