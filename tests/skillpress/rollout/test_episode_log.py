"""The log: a collection that was killed goes on, and no episode is lost or counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from walking import TASKS, Countdowner, Walker

from skillpress.errors import StorageError
from skillpress.resume import ResumeStore, SaveTimer
from skillpress.rollout import Collector, EpisodeLog, SyncVectorEnv, requests
from skillpress.trajectory import Trajectory

WANTED = requests(TASKS, 3, 0, "test", "run-0") + requests(TASKS, 3, 0, "test", "run-1")
ALWAYS, NEVER = 0.0, 1e9


def collector() -> Collector:
    return Collector(SyncVectorEnv(Countdowner), Walker(), 4)


def play(folder: Path, until: int | None = None, seconds: float = ALWAYS) -> tuple[list[Trajectory], int]:
    """What a collection gives that is interrupted at its episode ``until``; and how many it played."""
    played = 0

    def count() -> None:
        nonlocal played
        played += 1
        if played == until:
            raise KeyboardInterrupt

    with EpisodeLog(ResumeStore(folder, "key"), SaveTimer(seconds)) as log:
        log.play(collector(), WANTED, 5, count)
    return log.trajectories(WANTED), played


WHOLE = collector().collect(WANTED, 5)


def test_what_is_not_interrupted_is_what_the_collector_plays(tmp_path: Path) -> None:
    assert play(tmp_path, seconds=NEVER) == (WHOLE, len(WANTED))


@pytest.mark.parametrize("seconds", [ALWAYS, NEVER])
def test_interrupted_and_started_again_it_plays_what_is_missing(tmp_path: Path, seconds: float) -> None:
    for until in (7, 11):
        with pytest.raises(KeyboardInterrupt):
            play(tmp_path, until, seconds)
    assert play(tmp_path, seconds=seconds) == (WHOLE, len(WANTED) - 18)
    left = 0 if seconds == ALWAYS else len(WANTED) - 18
    assert play(tmp_path, seconds=seconds) == (WHOLE, left), "an end without an error saves by the clock"


def test_a_kill_loses_what_was_not_saved_and_no_more(tmp_path: Path) -> None:
    log = EpisodeLog(ResumeStore(tmp_path, "key"), SaveTimer(NEVER))
    for number, trajectory in enumerate(WHOLE[:9], 1):
        log.add(trajectory)
        if number == 6:
            log.save()
    assert len(EpisodeLog(ResumeStore(tmp_path, "key")).missing(WANTED)) == len(WANTED) - 6


def test_a_finished_works_parts_are_forgotten(tmp_path: Path) -> None:
    play(tmp_path)
    other = ResumeStore(tmp_path, "other")
    with EpisodeLog(other, SaveTimer(ALWAYS)) as log:
        assert log.missing(WANTED) == WANTED, "another key's parts are not taken"
        log.add(WHOLE[0])
    ResumeStore(tmp_path, "key").clear()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    play(tmp_path)
    _, path = ResumeStore(tmp_path, "key").parts("episodes")[2]
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StorageError, match=rf"{path.name}: not a readable Parquet file"):
        play(tmp_path)
