"""One worker process at a time, and its successors.

The process is spawned, never forked, since the parent holds torch and its threads. Like all spawned processes
it imports the parent's main module, so heavy imports of that module belong in functions. A counter in shared
memory says which job of its batch the process is at. So a deadline applies to each job and not to the batch,
and the failing job is known however it failed.

The process ends with its parent, however the parent ends: a step that never ends would not notice that its
parent is gone. It also ends with its first exception, because an engine's state is unknown after one. The
parent handles Ctrl-C; in the process it is blocked from the start.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import c_longlong
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Literal

import psutil

from skillpress.core.log_lines import set_up
from skillpress.rollouts.workers.parent import end_with_parent
from skillpress.rollouts.workers.ranks import exit_in_words

_LOG = logging.getLogger(__name__)

START_SECONDS = 120.0
"""A process that is not ready by then counts as hung; importing an engine takes seconds."""
FITS_BYTES = 4096
"""A message up to this size fits into an empty pipe on every system, so sending it cannot block."""
GROWTH = 2.0
"""If the first batch already takes more memory than the cap, a restart would not help. The worker may then
grow to this multiple of the first batch's memory. In the middle of a batch it may take this multiple of its
cap."""


class WorkerPoolError(RuntimeError):
    """Worker processes cannot be started; the message says why."""


@dataclass(frozen=True)
class WorkerLimits:
    """What a worker may use before it is replaced."""

    seconds: float = 120.0
    """Maximum time for one job. A step takes milliseconds, a whole demonstration seconds."""
    memory: int = 2 << 30
    """Maximum resident bytes of one process. Thirty ALFWorld games take a few hundred MB."""
    attempts: int = 2
    """Number of workers that may fail at one job before the pool gives up on the job."""


NOT_READY = -1
"""Value of the shared counter until the process is ready for its first job."""


@dataclass(frozen=True)
class Done:
    """The message that all jobs of a batch are done."""

    answers: list[bytes]
    """Answers, pickled one by one in the worker, so that a job whose answer cannot be pickled is known."""
    memory: int
    """Resident bytes of the process after the batch."""


@dataclass(frozen=True)
class Raised:
    """The last message of a process in which a job raised an exception."""

    error: str
    """Type and message of the exception."""
    traceback: str


def serve(connection: Connection, begun: c_longlong, make: Callable[[], Callable[[Any], Any]]) -> None:
    """The process: do the jobs of each message, answer them in one message, until the parent closes the
    connection.

    ``begun`` is the index of the current job, shared with the parent; ``make`` makes what does a job.
    """
    end_with_parent()
    set_up()
    try:
        do = make()
    except Exception as error:  # noqa: BLE001  the parent decides what to do
        connection.send(_raised(error))
        return
    begun.value = 0
    process = psutil.Process()
    while True:
        try:
            jobs = connection.recv()
        except EOFError:
            return
        answers = []
        for index, job in enumerate(jobs):
            begun.value = index
            try:
                answers.append(pickle.dumps(do(job)))
            except Exception as error:  # noqa: BLE001  the parent decides what to do
                connection.send(_raised(error))
                return
        connection.send(Done(answers, process.memory_info().rss))


def _raised(error: Exception) -> Raised:
    return Raised(traceback.format_exception_only(error)[-1].strip(), traceback.format_exc())


Reason = Literal["died", "hung", "grew", "raised"]


@dataclass(frozen=True)
class Failure:
    """Why a worker was replaced, or why a job has no answer."""

    reason: Reason
    detail: str
    """A description: the exit code, the limit, or the exception."""
    traceback: str = ""
    """The exception's traceback as text."""


class Worker:
    """Does batches of jobs, one message each way, in a process that may be replaced between them."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], limits: WorkerLimits) -> None:
        """``make`` is called in the process and returns the function that does a job there."""
        self.generation = 0
        """How often the process was replaced. A new process has nothing that earlier ones held in memory."""
        self._make, self._limits = make, limits
        self._process: SpawnProcess | None = None
        self._connection: Connection
        self._sender: threading.Thread | None = None
        """Sends a batch that is too large for the pipe, until the process has read it or has ended."""
        self._begun: c_longlong
        self._seen = NOT_READY
        self._since = 0.0
        self._first_memory = 0

    @property
    def handles(self) -> list[Connection | int]:
        """The handles to wait for while it works."""
        assert self._process is not None
        return [self._connection, self._process.sentinel]

    def give(self, jobs: Sequence[Any]) -> None:
        """Send a batch; never blocks, since a process that does not read it becomes overdue."""
        if self._process is None:
            self._start()
        if self._begun.value != NOT_READY:
            self._begun.value = 0
        self._seen, self._since = self._begun.value, time.monotonic()
        message = bytes(ForkingPickler.dumps(jobs))
        if len(message) <= FITS_BYTES:
            self._send(message)
            return
        self._sender = threading.Thread(target=self._send, args=(message,), daemon=True)
        self._sender.start()

    def attend(self) -> list[Any] | tuple[Failure, int] | None:
        """The answers, or a failure and its job; None while it works; ``WorkerPoolError`` if never ready."""
        assert self._process is not None
        alive = self._process.is_alive()  # before looking for a message, which may be its last
        if self._connection.poll():
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                alive = False
            else:
                return self._fail("raised", message) if isinstance(message, Raised) else self._done(message)
        if not alive:
            return self._fail("died")
        if self._memory() > GROWTH * self._cap():
            return self._fail("grew")
        return self._fail("hung") if self._overdue() else None

    def replace(self) -> None:
        """End the process; its successor starts with the next batch."""
        self.stop()
        self.generation += 1

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            if self._sender is not None:  # killing the process has closed the other end
                self._sender.join()
                self._sender = None
            self._connection.close()
            self._process = None

    def _send(self, message: bytes) -> None:
        with suppress(OSError):  # the process has died; attend will report it
            self._connection.send_bytes(message)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._begun = context.RawValue(c_longlong, NOT_READY)
        process = context.Process(target=serve, args=(theirs, self._begun, self._make), daemon=True)
        self._first_memory = 0
        # A child inherits the signal mask, so only this process gets Ctrl-C.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._process = process
        theirs.close()

    def _done(self, message: Done) -> list[Any]:
        self._first_memory = self._first_memory or message.memory
        if message.memory > self._cap():
            self.replace()
        return [pickle.loads(answer) for answer in message.answers]

    def _cap(self) -> float:
        return max(self._limits.memory, GROWTH * self._first_memory)

    def _memory(self) -> int:
        assert self._process is not None
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.NoSuchProcess:
            return 0

    def _overdue(self) -> bool:
        begun, now = self._begun.value, time.monotonic()
        if begun != self._seen:
            self._seen, self._since = begun, now
        return now - self._since > self._deadline()

    def _deadline(self) -> float:
        return START_SECONDS if self._begun.value == NOT_READY else self._limits.seconds

    def _fail(self, reason: Reason, raised: Raised | None = None) -> tuple[Failure, int]:
        """Replace the process; return its failure and the job of the batch that it was at."""
        assert self._process is not None
        position = self._begun.value
        if reason == "died":
            self._process.join()
        details = {
            "died": f"its process ended with {exit_in_words(self._process.exitcode)}",
            "hung": f"it took longer than {self._deadline():g} seconds",
            "grew": f"its process grew beyond {GROWTH * self._cap() / 2**20:.0f} MiB",
            "raised": raised.error if raised else "",
        }
        _LOG.debug("a worker process is replaced: %s", details[reason])
        self.replace()
        if position == NOT_READY:
            raise WorkerPoolError(f"a worker process could not start: {details[reason]}")
        return Failure(reason, details[reason], raised.traceback if raised else ""), position
