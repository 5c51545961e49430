"""The work of the tests' ranks; spawned ranks import it from here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.core.waiting import waiting
from skillpress.rollouts.workers.ranks import Report


def wait_for_torch(rank: int, size: int, report: Report) -> None:
    with waiting(f"importing torch in rank {rank}"):
        pass


def square(rank: int, size: int, report: Report) -> int:
    report(size)
    return rank * rank


def die(rank: int, size: int, report: Report) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def be_terminated(rank: int, size: int, report: Report) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)


def lose_the_other(folder: Path, rank: int, size: int, report: Report) -> None:
    """Rank 1 dies, and rank 0 notices it first, as in a collective."""
    dying = folder / "dying"
    if rank == 1:
        dying.touch()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.monotonic() + 120
    while not dying.exists() and time.monotonic() < until:
        time.sleep(0.01)
    raise ConnectionError("connection closed by peer")


def fill_the_disk(rank: int, size: int, report: Report) -> None:
    if rank == 1:
        raise StorageError("results: no space left on the device")
    time.sleep(600)


class StubbornError(Exception):
    """Cannot be pickled."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__("no way out")


def raise_unpicklable(rank: int, size: int, report: Report) -> None:
    raise StubbornError(1, 2)


def fall_silent(rank: int, size: int, report: Report) -> None:
    time.sleep(600)


def save_when_stopped(folder: Path, rank: int, size: int, report: Report) -> None:
    try:
        report("ready")
        time.sleep(600)
    finally:
        (folder / str(rank)).write_text("saved")


def wait_for_the_parents_end(folder: Path, rank: int, size: int, report: Report) -> None:
    (folder / f"pid-{rank}").write_text(str(os.getpid()))
    report(rank)
    time.sleep(600)
