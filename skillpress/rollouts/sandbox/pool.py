"""Sandboxes that are started before they are needed; each is used once.

No episode can find what another one left in memory or in files: a used sandbox is ended, and a new one is
started in the background.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox.isolation import Kind
from skillpress.rollouts.sandbox.limits import Limits, SandboxEndedError
from skillpress.rollouts.sandbox.sandbox import Sandbox, check_isolation
from skillpress.rollouts.sandbox.tools import Tool

Task = TypeVar("Task")
Result = TypeVar("Result")

STARTERS = 2
"""Number of sandboxes that start at the same time in the background; each needs a core."""


@dataclass(frozen=True)
class Outcome(Generic[Task, Result]):
    """The outcome of one task; every task has one."""

    task: Task
    attempts: int
    """Number of sandboxes in which the task was tried."""
    result: Result | None
    """The value that the episode returned; None if it failed."""
    error: Exception | None
    """The exception that the last attempt raised; None if it succeeded."""


class SandboxPool:
    """Keeps sandboxes ready; a context manager that ends them all."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        ready: int = 4,
        max_concurrency: int = 16,
        wait_seconds: float = 300.0,
        isolation: Kind = "bubblewrap",
        wheels: Path | None = None,
    ) -> None:
        """Args:
            limits: limits of each sandbox; None for the default ones.
            ready: number of sandboxes kept in stock.
            max_concurrency: maximum number of sandboxes in use at once.
            wait_seconds: maximum time to wait for a sandbox while that many are in use.
            isolation: as for ``Sandbox.start``.
            wheels: as for ``Sandbox.start``.

        Raises:
            SandboxUnavailableError: this machine cannot isolate; the message names cause and remedy.
            UserError: a number is out of range, or there is no such isolation.
        """
        if ready < 0 or max_concurrency < 1:
            raise UserError(
                f"sandbox pool: ready is {ready}, must be 0 or more; max_concurrency is {max_concurrency}, "
                f"must be 1 or more"
            )
        check_isolation(isolation)
        self._start = partial(Sandbox.start, limits, isolation=isolation, wheels=wheels)
        self._max_concurrency, self._wait_seconds = max_concurrency, wait_seconds
        self._free = threading.Semaphore(max_concurrency)
        self._stock: deque[Future[Sandbox]] = deque()
        self._stocking = threading.Lock()
        self._starters = ThreadPoolExecutor(STARTERS, thread_name_prefix="sandbox-starter")
        self._closed = False
        for _ in range(ready):
            self._refill()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def wait_until_ready(self) -> None:
        """Wait until the stock is complete.

        Raises:
            SandboxUnavailableError, SandboxEndedError: a sandbox could not be started.
        """
        for started in list(self._stock):
            started.result()

    @contextmanager
    def sandbox(
        self, tools: Mapping[str, Tool] | None = None, deadline_seconds: float | None = None
    ) -> Iterator[Sandbox]:
        """A new sandbox, which is ended with the block.

        Args:
            tools: maps names to functions of the host; None for none.
            deadline_seconds: maximum time for all calls together, after which it is ended; None for no limit.

        Raises:
            SandboxEndedError: all were in use for too long, it could not be started in time, or the pool is
                closed.
        """
        if not self._free.acquire(timeout=self._wait_seconds):
            raise SandboxEndedError(
                f"no sandbox became free within {self._wait_seconds:g} seconds; "
                f"{self._max_concurrency} are in use"
            )
        try:
            with self._take() as sandbox:
                if deadline_seconds is not None:
                    sandbox.ends_at = time.monotonic() + deadline_seconds
                if tools:
                    sandbox.use_tools(tools)
                yield sandbox
        finally:
            self._free.release()

    def run(
        self,
        tasks: Iterable[Task],
        episode: Callable[[Sandbox, Task], Result],
        *,
        deadline_seconds: float,
        attempts: int = 3,
    ) -> Iterator[Outcome[Task, Result]]:
        """Yield the outcome of each task as soon as it is known; every task has one.

        Args:
            episode: called in a thread with a new sandbox. If it raises a SandboxEndedError, the task is
                tried again in another sandbox. Any other exception would occur again and becomes the
                outcome.
            deadline_seconds: maximum time for one attempt; then its sandbox is ended.
            attempts: maximum number of attempts.
        """

        def attempt_all(task: Task) -> Outcome[Task, Result]:
            for attempt in range(1, attempts + 1):
                try:
                    with self.sandbox(deadline_seconds=deadline_seconds) as sandbox:
                        return Outcome(task, attempt, episode(sandbox, task), None)
                except SandboxEndedError as error:
                    last = Outcome[Task, Result](task, attempt, None, error)
                except Exception as error:  # noqa: BLE001  reported with its task
                    return Outcome(task, attempt, None, error)
            return last

        threads = ThreadPoolExecutor(self._max_concurrency, thread_name_prefix="sandbox-episode")
        try:
            for done in as_completed([threads.submit(attempt_all, task) for task in tasks]):
                yield done.result()
        finally:
            threads.shutdown(cancel_futures=True)

    def close(self) -> None:
        """End all sandboxes in stock. Those in use end with their blocks."""
        with self._stocking:
            self._closed = True
        self._starters.shutdown(wait=True, cancel_futures=True)
        for started in self._stock:
            if not started.cancelled() and started.exception() is None:
                started.result().close()
        self._stock.clear()

    def _take(self) -> Sandbox:
        """The sandbox that has been ready longest, or a new one that is started here."""
        while True:
            with self._stocking:
                if self._closed:
                    raise SandboxEndedError("the pool of sandboxes is closed")
                started = self._stock.popleft() if self._stock else None
            if started is None:
                return self._start()
            try:
                sandbox = started.result()
            finally:
                self._refill()  # only now: starting another blocks this interpreter for some milliseconds
            if sandbox.alive:
                return sandbox
            sandbox.close()  # it was killed while it waited

    def _refill(self) -> None:
        with self._stocking:
            if not self._closed:
                self._stock.append(self._starters.submit(self._start))
