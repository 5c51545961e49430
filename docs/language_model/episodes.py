"""Held-out puzzles as the start and a trained model play them, kept for the page to show.

    python -m docs.language_model.episodes WORKSPACE "segcost, seed 2"

reads the evaluation of a run and writes ``episodes.json``. It takes the first test puzzles in their order, so
nobody chose them. The study deletes a run's workspace once it is recorded: copy its rollouts before, or make
the run again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import polars as pl
from pydantic import TypeAdapter, ValidationError

from docs.study.words import table
from skillpress.core.errors import StorageError, UserError
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.storage import read_json, write_json
from skillpress.core.trajectory import Trajectory
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, START, TRAINED

FILE = "episodes.json"
PUZZLES = 10
"""How many are kept."""


@dataclass(frozen=True)
class Turn:
    """An action, and why the environment refused it; None if it did not."""

    action: str
    refused: str | None


@dataclass(frozen=True)
class Played:
    """An episode."""

    turns: tuple[Turn, ...]
    won: bool


@dataclass(frozen=True)
class Puzzle:
    """A puzzle that both played."""

    words: str
    """What the environment says first: the target and the numbers."""
    start: Played
    trained: Played


@dataclass(frozen=True)
class Episodes:
    """The file."""

    run: str
    """Method and seed."""
    puzzles: tuple[Puzzle, ...]


def read_episodes(folder: Path) -> Episodes | None:
    """The folder's file; None if it has none.

    Raises:
        StorageError: it holds something else.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return TypeAdapter(Episodes).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StorageError(
            f"{path}: {place}: {first['msg']}; docs.language_model.episodes makes it"
        ) from error


def first_puzzles(workspace: Path, run: str) -> Episodes:
    """The first test puzzles of a run's workspace.

    Raises:
        StorageError: a file of rollouts is missing or damaged.
        UserError: the start and the trained policy have no puzzle in common.
    """
    path = workspace / EVALUATION_ROLLOUTS
    of_start = {one.task_id: one for one in _of(START, path)}
    pairs = ((of_start[one.task_id], one) for one in _of(TRAINED, path) if one.task_id in of_start)
    puzzles = tuple(
        Puzzle(after.first_observation, _played(before), _played(after))
        for before, after in islice(pairs, PUZZLES)
    )
    if not puzzles:
        raise UserError(f"{workspace}: the start and the trained policy played no puzzle in common")
    return Episodes(run, puzzles)


def _of(policy: str, path: Path) -> Iterator[Trajectory]:
    return iterate_rollouts(path, keep=pl.col("policy") == policy, tokens=False)


def _played(episode: Trajectory) -> Played:
    return Played(tuple(Turn(step.action, step.invalid) for step in episode.steps), episode.won)


def shown(kept: Episodes | None) -> Iterator[str]:
    """The page's part: a row per puzzle."""
    if kept is None:
        yield "No episodes are kept yet."
        return
    yield from table(
        ("puzzle", "the start", kept.run),
        [(one.words, _in_words(one.start), _in_words(one.trained)) for one in kept.puzzles],
    )


def _in_words(played: Played) -> str:
    turns = ", ".join(
        f"`{turn.action}`" + (f" ({turn.refused.replace('_', ' ')})" if turn.refused else "")
        for turn in played.turns
    )
    return f"{turns}: **{'won' if played.won else 'lost'}**"


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.language_model.episodes")
    parser.add_argument("workspace", type=Path, help="folder of a finished run")
    parser.add_argument("run", help='its method and seed, such as "segcost, seed 2"')
    options = parser.parse_args()
    try:
        write_json(Path(__file__).parent / FILE, asdict(first_puzzles(options.workspace, options.run)))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
