"""The first held-out puzzles as a run's start and its trained model played them.

    python -m studies.language_model.episodes WORKSPACE "segcost, seed 2"

reads the evaluation of a run and adds it to ``episodes.json``. The puzzles are the first ones in their order,
not chosen. The study deletes a run's workspace once it is recorded: copy its rollouts before, or make the run
again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import polars as pl

from docs.committed import read_committed
from docs.words import table
from skillpress.core.errors import UserError
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Trajectory
from skillpress.pipeline import exit_codes
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, START, TRAINED

FOLDER = Path(__file__).parent
FILE = "episodes.json"
PUZZLES = 10
"""How many are kept."""
SHOWN = 5
"""How many of them the page shows."""


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


Kept = dict[str, tuple[Puzzle, ...]]
"""The file: method and seed, such as ``segcost, seed 2``, to the run's puzzles."""


def read_episodes(folder: Path) -> Kept:
    """The folder's file; empty if it has none.

    Raises:
        StorageError: it holds something else.
    """
    hint = "python -m studies.language_model.episodes makes it"
    return read_committed(folder / FILE, dict[str, tuple[Puzzle, ...]], hint)


def puzzles_of(workspace: Path) -> tuple[Puzzle, ...]:
    """The first test puzzles of the run in a workspace.

    Raises:
        StorageError: its rollouts are missing or damaged.
        UserError: the start and the trained policy have no puzzle in common.
    """
    path = workspace / EVALUATION_ROLLOUTS
    of_start = {one.task_id: one for one in _of(START, path)}
    both = ((of_start[one.task_id], one) for one in _of(TRAINED, path) if one.task_id in of_start)
    found = tuple(
        Puzzle(after.first_observation, _played(before), _played(after))
        for before, after in islice(both, PUZZLES)
    )
    if not found:
        raise UserError(f"{path}: the start and the trained policy played no puzzle in common")
    return found


def _of(policy: str, path: Path) -> Iterator[Trajectory]:
    return iterate_rollouts(path, keep=pl.col("policy") == policy, tokens=False)


def _played(episode: Trajectory) -> Played:
    return Played(tuple(Turn(step.action, step.invalid) for step in episode.steps), episode.won)


def puzzles(kept: Kept) -> Iterator[str]:
    """The page's part: a table per start and its puzzles, with a column for each run that shares them."""
    if not kept:
        yield "No episodes are kept yet."
    sharing: dict[tuple[tuple[str, Played], ...], list[str]] = {}
    for run, found in kept.items():
        sharing.setdefault(tuple((one.words, one.start) for one in found[:SHOWN]), []).append(run)
    for puzzles_and_starts, runs in sharing.items():
        rows = [
            (words, _in_words(start), *(_in_words(kept[run][place].trained) for run in runs))
            for place, (words, start) in enumerate(puzzles_and_starts)
        ]
        yield from ("", *table(("puzzle", "the start", *runs), rows))


def _in_words(played: Played) -> str:
    turns = ", ".join(
        f"`{turn.action}`" + (f" ({turn.refused.replace('_', ' ')})" if turn.refused else "")
        for turn in played.turns
    )
    return f"{turns}: **{'won' if played.won else 'lost'}**"


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.language_model.episodes")
    parser.add_argument("workspace", type=Path, help="folder of a finished run")
    parser.add_argument("run", help='its method and seed, such as "segcost, seed 2"')
    options = parser.parse_args()
    try:
        kept = read_episodes(FOLDER) | {options.run: puzzles_of(options.workspace)}
        write_json(FOLDER / FILE, {run: [asdict(one) for one in kept[run]] for run in sorted(kept)})
    except UserError as error:
        exit_codes.say(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
