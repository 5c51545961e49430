"""A pool of supervised processes: a worker that dies, hangs or grows is replaced, and the work goes on.

The jobs of a batch travel in one message and their answers in one. When a worker fails, its successor
first does the other jobs of the batch and then, alone, the job at which it failed. A job at which
``Limits.attempts`` workers have failed is reported as failed. The pool knows no domain: environments
and sandboxes both use it.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

from skillpress.workers.worker import Limits, Worker

WATCH_SECONDS = 0.2
"""How often working processes are looked at."""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerPool:
    """``size`` worker processes, each started when it is first given work."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], size: int, limits: Limits) -> None:
        """``make`` is called in each worker and returns the function that does a job there; it and
        the jobs are pickled."""
        self._workers = [Worker(make, limits) for _ in range(size)]
        self._limits = limits

    @property
    def restarts(self) -> int:
        """Workers replaced so far."""
        return sum(worker.generation for worker in self._workers)

    def generation(self, worker: int) -> int:
        """How often this worker was replaced."""
        return self._workers[worker].generation

    def run(
        self, work: Mapping[int, Iterable[Sequence[int]]], job: Callable[[int], Any]
    ) -> Iterator[tuple[int, Any]]:
        """Do numbered jobs.

        Args:
            work: worker to the batches of job numbers that it does one after the other.
            job: a number to the job, asked for when a worker is given it (and again for another).

        Yields:
            A job's number and its answer, or a ``Failure``, in the order in which they end.

        Raises:
            WorkerPoolError: a process ends before it is ready to work.
        """
        waiting = {worker: deque(batches) for worker, batches in work.items()}
        working: dict[int, Sequence[int]] = {}
        failed: Counter[int] = Counter()
        try:
            while True:
                for worker in [w for w, batches in waiting.items() if batches and w not in working]:
                    working[worker] = waiting[worker].popleft()
                    self._workers[worker].give([job(number) for number in working[worker]])
                if not working:
                    return
                wait([h for w in working for h in self._workers[w].handles], WATCH_SECONDS)
                for worker, batch in list(working.items()):
                    outcome = self._workers[worker].attend()
                    if outcome is None:
                        continue
                    del working[worker]
                    if isinstance(outcome, list):
                        yield from zip(batch, outcome, strict=True)
                        continue
                    failure, position = outcome
                    failing = batch[position]
                    if rest := [number for number in batch if number != failing]:
                        waiting[worker].appendleft(rest)
                    failed[failing] += 1
                    if failed[failing] < self._limits.attempts:
                        waiting[worker].insert(1 if rest else 0, [failing])
                    else:
                        yield failing, failure
        finally:
            for worker in working:  # left early: their answers would be taken for those of later jobs
                self._workers[worker].replace()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.stop()
