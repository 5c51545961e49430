"""How long a pool's caller waits, and for what."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest

from skillpress.rollouts.workers import Failure, WorkerLimits, WorkerPool, WorkerPoolError
from skillpress.rollouts.workers import worker as module

FULL = b"x" * 5_000_000
"""More than any pipe holds."""


class StuckStart:
    """An engine that hangs while it is imported."""

    def __call__(self) -> Callable[[Any], Any]:
        time.sleep(600)
        raise AssertionError


class StuckUnpickling(StuckStart):
    """Hangs before the process runs any of our code."""

    def __setstate__(self, state: object) -> None:
        time.sleep(600)

    def __getstate__(self) -> object:
        return 1


class Length:
    """Answers with the length of a job, after ``seconds``."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def __call__(self) -> Callable[[Any], Any]:
        return self.job

    def job(self, job: bytes) -> int:
        time.sleep(self.seconds)
        return len(job)


@pytest.mark.parametrize("make", [StuckStart(), StuckUnpickling()])
def test_a_process_that_hangs_while_it_starts_is_an_error_after_the_deadline_whatever_it_was_given(
    make: StuckStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 3.0)
    pool = WorkerPool(make, 1, WorkerLimits())
    started = time.monotonic()
    with pytest.raises(WorkerPoolError, match="could not start: it took longer than 3 seconds"):
        list(pool.run({0: [range(4)]}, lambda number: FULL))
    assert time.monotonic() - started < 60
    pool.close()


@pytest.mark.parametrize("size", [10, module.FITS_BYTES + 1, len(FULL)])
def test_batches_of_any_size_are_answered_one_after_the_other(size: int) -> None:
    pool = WorkerPool(Length(), 1, WorkerLimits())
    assert sorted(pool.run({0: [[0, 1], [2], [3]]}, lambda number: b"x" * (size + number))) == [
        (number, size + number) for number in range(4)
    ]
    pool.close()


def test_a_big_batch_at_which_a_worker_hangs_is_given_up_and_the_pool_works_on() -> None:
    pool = WorkerPool(Length(600.0), 1, WorkerLimits(seconds=1.0, attempts=1))
    ((number, failure),) = pool.run({0: [[0]]}, lambda number: FULL)
    assert number == 0 and isinstance(failure, Failure) and failure.reason == "hung"
    pool.close()


def given(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The messages that the pool's only worker receives from now on."""
    messages: list[list[Any]] = []
    (worker,) = pool._workers
    give = worker.give

    def spy(jobs: list[Any]) -> None:
        messages.append(jobs)
        give(jobs)

    monkeypatch.setattr(worker, "give", spy)
    return messages


def all_answers(pool: WorkerPool, count: int) -> dict[int, Any]:
    found: dict[int, Any] = {}
    while len(found) < count:
        found |= pool.completed(60.0)
    return found


def test_what_is_submitted_while_a_worker_works_travels_in_its_next_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = WorkerPool(Length(), 1, WorkerLimits())
    messages = given(pool, monkeypatch)
    for number in range(5):
        pool.submit(0, {number: lambda number=number: b"x" * number})
    assert all_answers(pool, 5) == {number: number for number in range(5)}
    assert messages == [[b""], [b"x", b"xx", b"xxx", b"xxxx"]]
    pool.close()


def test_a_failed_job_is_tried_again_alone_before_what_was_submitted_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = WorkerPool(Length(), 1, WorkerLimits(attempts=2))
    messages = given(pool, monkeypatch)
    pool.submit(0, {1: lambda: b"a", 2: lambda: 2, 3: lambda: b"c"})  # a number has no length
    pool.submit(0, {4: lambda: b"d"})
    found = all_answers(pool, 4)
    assert messages == [[b"a", 2, b"c"], [b"a", b"c"], [2], [b"d"]]
    assert isinstance(failure := found.pop(2), Failure) and "TypeError" in failure.detail
    assert found == {1: 1, 3: 1, 4: 1} and pool.restarts == 2
    pool.close()


def test_aborted_jobs_are_never_answered_and_their_numbers_can_be_used_again() -> None:
    pool = WorkerPool(Length(), 1, WorkerLimits())
    pool.submit(0, {0: lambda: b"x", 1: lambda: b"xx"})
    pool.submit(0, {2: lambda: b"xxx"})
    pool.abort()
    assert pool.completed(0.5) == []
    pool.submit(0, {1: lambda: b"y" * 9})
    assert all_answers(pool, 1) == {1: 9}
    pool.close()


def test_a_process_that_cannot_be_started_says_why() -> None:
    pool = WorkerPool(lambda: Length().job, 1, WorkerLimits())
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        list(pool.run({0: [[0]]}, bytes))
    pool.close()
