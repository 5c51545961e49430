"""Episodes that the language model's page shows: the first puzzles of a run, as both policies play them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError, UserError
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Step, Trajectory
from skillpress.pipeline.files import EVALUATION_ROLLOUTS
from studies.language_model.episodes import (
    FILE,
    PUZZLES,
    Played,
    Puzzle,
    Turn,
    puzzles,
    puzzles_of,
    read_episodes,
)

STEP = Step((1,), (2,), (0.0,), "", "op(+, 2, 12)", "Numbers: 14", None, ())
REFUSED = replace(STEP, action="op(+, 9, 9)", invalid="no_such_number")


def played(policy: str, puzzle: int) -> Trajectory:
    won = policy == "trained"
    steps = (STEP,) if won else (REFUSED, REFUSED)
    return Trajectory(
        f"puzzle {puzzle}", f"{policy}/{puzzle}", 0, steps, won, won, not won,
        "won" if won else "timeout", 0, 0, f"Target: 14. Numbers: {puzzle} 12", policy,
    )  # fmt: skip


def evaluation(
    folder: Path, puzzles: int, policies: tuple[str, ...] = ("explorer", "start", "trained")
) -> Path:
    (folder / EVALUATION_ROLLOUTS).parent.mkdir(parents=True)
    episodes = [played(policy, puzzle) for policy in policies for puzzle in range(puzzles)]
    write_rollouts(folder / EVALUATION_ROLLOUTS, episodes)
    return folder


def test_the_first_puzzles_are_kept_as_start_and_trained_policy_played_them(tmp_path: Path) -> None:
    kept = puzzles_of(evaluation(tmp_path, PUZZLES + 3))
    assert [one.words for one in kept] == [f"Target: 14. Numbers: {n} 12" for n in range(PUZZLES)]
    assert kept[0].start == Played((Turn("op(+, 9, 9)", "no_such_number"),) * 2, won=False)
    assert kept[0].trained == Played((Turn("op(+, 2, 12)", None),), won=True)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    kept = {"grpo, seed 1": puzzles_of(evaluation(tmp_path, 2))}
    write_json(tmp_path / FILE, {run: [asdict(one) for one in found] for run, found in kept.items()})
    assert read_episodes(tmp_path) == kept


def test_a_run_whose_start_did_not_play_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no puzzle in common"):
        puzzles_of(evaluation(tmp_path, 2, policies=("trained",)))


def test_a_wrong_file_is_refused_with_its_field(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"grpo, seed 1": [{"words": 3}]}')
    with pytest.raises(StorageError, match=r"episodes\.json: grpo, seed 1\.0\.words"):
        read_episodes(tmp_path)


def test_the_page_shows_actions_refusals_and_ends_and_says_where_none_are_kept(tmp_path: Path) -> None:
    puzzle = Puzzle(
        "Target: 14. Numbers: 2 12",
        start=Played((Turn("op(+, 9, 9)", "no_such_number"),), won=False),
        trained=Played((Turn("op(+, 2, 12)", None),), won=True),
    )
    lost = replace(puzzle, trained=puzzle.start)
    other = replace(puzzle, words="Target: 3. Numbers: 1 2")
    kept = {"grpo, seed 2": (lost,), "segcost, seed 2": (puzzle,), "segcost, seed 3": (other,)}
    _, head, _, row, *others = puzzles(kept)
    assert head == "| puzzle | the start | grpo, seed 2 | segcost, seed 2 |"
    refused = "`op(+, 9, 9)` (no such number): **lost**"
    assert row == f"| Target: 14. Numbers: 2 12 | {refused} | {refused} | `op(+, 2, 12)`: **won** |"
    assert others[1] == "| puzzle | the start | segcost, seed 3 |", "a table per start and its puzzles"
    assert list(puzzles(read_episodes(tmp_path))) == ["No episodes are kept yet."]
