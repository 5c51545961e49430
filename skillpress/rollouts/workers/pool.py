"""A pool of supervised processes: a worker that dies, hangs or grows is replaced, and the work continues.

Jobs are handed over with ``submit``, and their answers come from ``completed``. The jobs of a batch travel in
one message, and so do their answers. Jobs that are submitted while a worker is busy travel in its next
message. When a worker fails, its successor first does the other jobs of the batch and then, on its own, the
job at which the worker failed. A job at which ``WorkerLimits.attempts`` workers have failed is reported as
failed. The pool does not depend on what the jobs do: environments and sandboxes both use it.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait as wait_for
from typing import Any

from skillpress.rollouts.workers.worker import Worker, WorkerLimits

WATCH_SECONDS = 0.2
"""Interval of checks on busy processes."""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Batch:
    """Numbers of the jobs that travel in one message."""

    numbers: list[int]
    takes_more: bool = False
    """Whether jobs that are submitted before it is sent may join it. A job that has failed travels alone."""


class WorkerPool:
    """``size`` worker processes, each started when it first gets work."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], size: int, limits: WorkerLimits) -> None:
        """``make`` is called in each worker and returns what does a job there; both are pickled."""
        self._workers = [Worker(make, limits) for _ in range(size)]
        self._limits = limits
        self._jobs: dict[int, Callable[[], Any]] = {}
        """The unanswered jobs, by number."""
        self._waiting: list[deque[_Batch]] = [deque() for _ in range(size)]
        self._working: dict[int, list[int]] = {}
        """Maps each busy worker to the numbers of its jobs."""
        self._failed: Counter[int] = Counter()
        self._watched = 0.0

    @property
    def restarts(self) -> int:
        """Number of workers replaced so far."""
        return sum(worker.generation for worker in self._workers)

    def generation(self, worker: int) -> int:
        """How often this worker was replaced."""
        return self._workers[worker].generation

    def submit(self, worker: int, jobs: Mapping[int, Callable[[], Any]]) -> None:
        """Give a worker these jobs, now or when it has answered; never blocks.

        Args:
            jobs: maps numbers to functions that make the jobs. A number must not belong to an unanswered job.
                A job is made when it is sent, and again if it goes to a successor.
        """
        self._jobs |= jobs
        batches = self._waiting[worker]
        if batches and batches[-1].takes_more:
            batches[-1].numbers += jobs
        else:
            batches.append(_Batch([*jobs], takes_more=True))
        self._send()

    def completed(self, wait: float) -> list[tuple[int, Any]]:
        """Return (number, answer or ``Failure``) for each job that has ended since the last call.

        Args:
            wait: maximum number of seconds until the first of them. A job that takes longer than
                ``WorkerLimits.seconds`` has ended, too.

        Raises:
            WorkerPoolError: a process ends before it is ready to work.
        """
        ends = time.monotonic() + wait
        while self._working:
            left = max(0.0, ends - time.monotonic())
            handles = [handle for worker in self._working for handle in self._workers[worker].handles]
            ready = wait_for(handles, min(WATCH_SECONDS, left))
            found = self._attend(ready)
            self._send()
            if found or time.monotonic() >= ends:
                return found
        return []

    def abort(self) -> None:
        """Forget unanswered jobs; replace busy workers, whose answers would pass for later jobs'."""
        for worker in self._working:
            self._workers[worker].replace()
        self._working.clear()
        for batches in self._waiting:
            batches.clear()
        self._jobs.clear()
        self._failed.clear()

    def run(
        self, work: Mapping[int, Iterable[Sequence[int]]], job: Callable[[int], Any]
    ) -> Iterator[tuple[int, Any]]:
        """Do numbered jobs. No other jobs may be open.

        Args:
            work: maps each worker to its batches of job numbers, which it does one after the other.
            job: maps a number to the job.

        Yields:
            A job's number and its answer, or a ``Failure``, in the order in which the jobs end.

        Raises:
            WorkerPoolError: a process ends before it is ready to work.
        """
        waiting = {worker: deque(batches) for worker, batches in work.items()}
        unanswered: dict[int, set[int]] = {worker: set() for worker in work}
        try:
            while True:
                for worker, batches in waiting.items():
                    if batches and not unanswered[worker]:
                        numbers = batches.popleft()
                        unanswered[worker] |= set(numbers)
                        self.submit(worker, {number: partial(job, number) for number in numbers})
                if not any(unanswered.values()):
                    return
                for number, answer in self.completed(WATCH_SECONDS):
                    for numbers_of_worker in unanswered.values():
                        numbers_of_worker.discard(number)
                    yield number, answer
        finally:
            self.abort()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.stop()

    def _send(self) -> None:
        """Give every idle worker its next batch."""
        for worker, batches in enumerate(self._waiting):
            if batches and worker not in self._working:
                numbers = batches.popleft().numbers
                self._working[worker] = numbers
                self._workers[worker].give([self._jobs[number]() for number in numbers])

    def _attend(self, ready: Sequence[Any]) -> list[tuple[int, Any]]:
        """The answers of the workers that have sent something. At intervals, all busy workers are checked."""
        watch = time.monotonic() - self._watched >= WATCH_SECONDS
        if watch:
            self._watched = time.monotonic()
        found: list[tuple[int, Any]] = []
        for worker, numbers in list(self._working.items()):
            if not watch and not any(handle in ready for handle in self._workers[worker].handles):
                continue
            outcome = self._workers[worker].attend()
            if outcome is None:
                continue
            del self._working[worker]
            if isinstance(outcome, list):
                found += zip(numbers, outcome, strict=True)
                continue
            failure, position = outcome
            if self._again(worker, numbers, numbers[position]):
                continue
            found.append((numbers[position], failure))
        for number, _ in found:
            del self._jobs[number]
            self._failed.pop(number, None)
        return found

    def _again(self, worker: int, numbers: Sequence[int], failing: int) -> bool:
        """Queue a failed batch again; return whether the failing job will be tried again, too."""
        batches = self._waiting[worker]
        rest = [number for number in numbers if number != failing]
        if rest:
            batches.appendleft(_Batch(rest))
        self._failed[failing] += 1
        tried_again = self._failed[failing] < self._limits.attempts
        if tried_again:
            batches.insert(1 if rest else 0, _Batch([failing]))
        return tried_again
