"""The log: a killed collection continues, no episode is lost or counted twice, and none stays in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore, SaveTimer
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.rollouts.collection import (
    Collector,
    EpisodeLog,
    SyncVectorEnv,
    episode_log,
    ordered,
    requests,
    write_in_order,
)
from tests.support.rollouts.walking import TASKS, Countdowner, Walker

WANTED = requests(TASKS, 3, 0, "test", "run-0") + requests(TASKS, 3, 0, "test", "run-1")
ALWAYS, NEVER = 0.0, 1e9


def collector() -> Collector:
    return Collector(SyncVectorEnv(Countdowner), Walker(), 4)


def play(folder: Path, until: int | None = None, seconds: float = ALWAYS) -> tuple[list[Trajectory], int]:
    """Run a collection that is interrupted at its episode ``until``; return its result and the number of
    episodes played."""
    played = 0

    def count() -> None:
        nonlocal played
        played += 1
        if played == until:
            raise KeyboardInterrupt

    with EpisodeLog(ResumeStore(folder, "key"), SaveTimer(seconds)) as log:
        log.play(collector(), enumerate(WANTED), 5, count)
        log.save()
    return gathered(folder), played


def gathered(folder: Path) -> list[Trajectory]:
    """All episodes, from the store with the key ``key``."""
    write_in_order(folder / "all", [ResumeStore(folder, "key")], len(WANTED), folder / "scratch")
    assert not (folder / "scratch").exists()
    return read_rollouts(folder / "all")


WHOLE = collector().collect(WANTED, 5)


def test_what_is_not_interrupted_is_what_the_collector_plays(tmp_path: Path) -> None:
    assert play(tmp_path, seconds=NEVER) == (WHOLE, len(WANTED))


@pytest.mark.parametrize("seconds", [ALWAYS, NEVER])
def test_interrupted_and_started_again_it_plays_what_is_missing(tmp_path: Path, seconds: float) -> None:
    for until in (7, 11):
        with pytest.raises(KeyboardInterrupt):
            play(tmp_path, until, seconds)
    assert play(tmp_path, seconds=seconds) == (WHOLE, len(WANTED) - 18)
    assert play(tmp_path, seconds=seconds) == (WHOLE, 0)


def test_a_kill_loses_what_was_not_saved_and_no_more(tmp_path: Path) -> None:
    log = EpisodeLog(ResumeStore(tmp_path, "key"), SaveTimer(NEVER))
    for number, trajectory in enumerate(WHOLE[:9]):
        log.add(number, trajectory)
        if number == 5:
            log.save()
    assert all(number in log for number in range(9))
    successor = EpisodeLog(ResumeStore(tmp_path, "key"))
    assert [number for number in range(len(WANTED)) if number in successor] == list(range(6))


def test_a_finished_works_parts_are_forgotten(tmp_path: Path) -> None:
    play(tmp_path)
    other = ResumeStore(tmp_path, "other")
    with EpisodeLog(other, SaveTimer(ALWAYS)) as log:
        assert not any(number in log for number in range(len(WANTED))), "another key's parts are not taken"
        log.add(0, WHOLE[0])
    ResumeStore(tmp_path, "key").clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "other"]


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    play(tmp_path)
    _, path = ResumeStore(tmp_path, "key").parts("episodes")[2]
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StorageError, match=rf"{path.name}: not a readable Parquet file"):
        play(tmp_path)


def test_many_episodes_are_written_before_the_clock_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_log, "UNSAVED_VALUES", 1000)
    store = ResumeStore(tmp_path, "key")
    log = EpisodeLog(store, SaveTimer(NEVER))
    for number, trajectory in enumerate(WHOLE):
        log.add(number, trajectory)
        assert sum(len(t.steps) for _, t in log._unsaved) < 10 + len(trajectory.steps)
    assert len(store.parts("episodes")) > 5


@pytest.mark.parametrize("rows", [1, 7, 10**6])
def test_the_file_is_in_the_order_asked_byte_for_byte_whatever_finished_first(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered, "SLICE_ROWS", rows)
    write_rollouts(tmp_path / "expected", WHOLE)
    finished = list(enumerate(WHOLE))
    Random(rows).shuffle(finished)
    stores = [ResumeStore(tmp_path, "key").of_rank(rank) for rank in range(2)]
    for rank, store in enumerate(stores):
        log = EpisodeLog(store, SaveTimer(NEVER))
        for place, (number, trajectory) in enumerate(finished[rank::2]):
            log.add(number, trajectory)
            if place % 5 == 4:
                log.save()
        log.save()
    write_in_order(tmp_path / "all", stores, len(WHOLE), tmp_path / "scratch")
    assert (tmp_path / "all").read_bytes() == (tmp_path / "expected").read_bytes()


def test_episodes_that_are_missing_or_there_twice_are_an_error(tmp_path: Path) -> None:
    store = ResumeStore(tmp_path, "key")
    log = EpisodeLog(store, SaveTimer(ALWAYS))
    for number, trajectory in enumerate(WHOLE[:-1]):
        log.add(number, trajectory)
    with pytest.raises(StorageError, match=r"35 of 36 episodes were found, in 35 copies; delete"):
        gathered(tmp_path)
    log.add(34, WHOLE[34])
    log.add(35, WHOLE[35])
    with pytest.raises(StorageError, match=r"36 of 36 episodes were found, in 37 copies; delete"):
        gathered(tmp_path)
