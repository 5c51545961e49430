"""How the start and a trained model play: the first held-out puzzles, and shares over all of them.

    python -m docs.language_model.episodes WORKSPACE "segcost, seed 2"

reads the evaluation of a run and adds it to ``episodes.json``. The puzzles are the first ones in their order,
not chosen. The study deletes a run's workspace once it is recorded: copy its rollouts before, or make the run
again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import and_
from pathlib import Path
from statistics import fmean

import polars as pl

from docs.committed import read_committed
from docs.study.words import percent, table
from skillpress.core.errors import UserError
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Step, Trajectory
from skillpress.pipeline.files import EVALUATION_ROLLOUTS, START, TRAINED

FOLDER = Path(__file__).parent
FILE = "episodes.json"
PUZZLES = 10
"""How many are kept."""
UNDOING = ("rollback", "reset")
"""Actions that take back the last action, or all."""


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
class Behaviour:
    """How a policy played all held-out puzzles."""

    episodes: int
    refused: float
    """Share of actions that the environment refused."""
    undid: float
    """Share of episodes that took an action back."""
    won_after: float
    """Share of episodes that took an action back and won."""
    won_without: float
    """Share of episodes that won and took none back."""


@dataclass(frozen=True)
class Episodes:
    """A run's entry in the file."""

    puzzles: tuple[Puzzle, ...]
    start: Behaviour
    trained: Behaviour


Kept = Mapping[str, Episodes]
"""The file: method and seed, such as ``segcost, seed 2``, to the run's entry."""


def read_episodes(folder: Path) -> dict[str, Episodes]:
    """The folder's file; empty if it has none.

    Raises:
        StorageError: it holds something else.
    """
    hint = "python -m docs.language_model.episodes makes it"
    return read_committed(folder / FILE, dict[str, Episodes], hint)


def episodes_of(workspace: Path) -> Episodes:
    """The entry of the run in a workspace.

    Raises:
        StorageError: its rollouts are missing or damaged.
        UserError: the start and the trained policy have no puzzle in common.
    """
    path = workspace / EVALUATION_ROLLOUTS
    starts, trained = list(_of(START, path)), list(_of(TRAINED, path))
    of_start = {one.task_id: one for one in starts}
    both = [(of_start[one.task_id], one) for one in trained if one.task_id in of_start]
    if not both:
        raise UserError(f"{path}: the start and the trained policy played no puzzle in common")
    puzzles = tuple(
        Puzzle(after.first_observation, _played(before), _played(after)) for before, after in both[:PUZZLES]
    )
    return Episodes(puzzles, behaviour_of(starts), behaviour_of(trained))


def behaviour_of(episodes: Sequence[Trajectory]) -> Behaviour:
    """The shares over these episodes; there must be one."""
    steps = [step for one in episodes for step in one.steps]
    undid = [any(_undoes(step) for step in one.steps) for one in episodes]
    won = [one.won for one in episodes]
    return Behaviour(
        episodes=len(episodes),
        refused=fmean(step.invalid is not None for step in steps),
        undid=fmean(undid),
        won_after=fmean(map(and_, won, undid)),
        won_without=fmean(win and not back for win, back in zip(won, undid, strict=True)),
    )


def _undoes(step: Step) -> bool:
    return step.invalid is None and step.action in UNDOING


def _of(policy: str, path: Path) -> Iterator[Trajectory]:
    return iterate_rollouts(path, keep=pl.col("policy") == policy, tokens=False)


def _played(episode: Trajectory) -> Played:
    return Played(tuple(Turn(step.action, step.invalid) for step in episode.steps), episode.won)


def puzzles(kept: Kept) -> Iterator[str]:
    """The page's part: the puzzles of the first run, a row each."""
    if not kept:
        yield "No episodes are kept yet."
        return
    run, episodes = next(iter(kept.items()))
    rows = [(one.words, _in_words(one.start), _in_words(one.trained)) for one in episodes.puzzles]
    yield from table(("puzzle", "the start", run), rows)


def behaviours(kept: Kept) -> Iterator[str]:
    """The page's part: how the start and the trained policy of each run play, before and after."""
    rows = []
    for run, episodes in kept.items():
        pairs = [
            (getattr(episodes.start, name), getattr(episodes.trained, name))
            for name in ("refused", "undid", "won_without", "won_after")
        ]
        rows.append((run, *(f"{percent(before)} to {percent(after)}" for before, after in pairs)))
    count = next((f", of {one.trained.episodes} episodes" for one in kept.values()), "")
    heads = (
        f"from the start to the end of training, percent{count}",
        "refused, of all actions",
        "took an action back",
        "won, and took none back",
        "won after taking back",
    )
    yield from table(heads, rows)


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
        kept = read_episodes(FOLDER) | {options.run: episodes_of(options.workspace)}
        write_json(FOLDER / FILE, {run: asdict(kept[run]) for run in sorted(kept)})
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
