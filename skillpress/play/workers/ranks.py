"""One function on N processes side by side, the ranks: how every part of an experiment uses its cores.

Ranks are spawned, each calls ``work(rank, size, report)``, and what they return comes back in rank
order. A single rank is the calling process itself. The function decides what its share is from rank and
size alone, so the result depends on the number of ranks and never on the machine's cores.

Nothing waits for ever: a rank that dies or raises ends all of them, with an error that names it, and so
do ranks that do not start or that all fall silent. Ranks end with their parent. The parent reads Ctrl-C;
ranks that are stopped by it get SIGTERM and some seconds to save what they have.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Literal, TypeVar

from skillpress.core.errors import UserError
from skillpress.play.workers.parent import end_with_parent

Result = TypeVar("Result")
Report = Callable[[Any], None]
"""Tells the parent how far a rank has come; what is told is pickled."""
Work = Callable[[int, int, Report], Result]
"""``work(rank, size, report)``; pickled where there are several ranks."""

START_SECONDS = 300.0
"""A rank that has not begun by then counts as hung; importing torch on a busy machine takes a minute."""
SILENCE_SECONDS = 7200.0
"""Ranks of which none has said anything for so long count as hung. One training step of a large model
takes minutes; a collective that waits for a lost rank gives up by itself after half an hour."""
GRACE_SECONDS = 5.0
"""What a rank has to save its work after SIGTERM."""
_AFTERMATH_SECONDS = 5.0
"""After a rank has raised: how long to look whether another one's death was the cause."""


class RankError(RuntimeError):
    """A rank died, hung, or raised what cannot be handed over; the message names it."""


@dataclass(frozen=True)
class Message:
    """What a rank tells those who wait for it, pickled."""

    kind: Literal["begun", "report", "done", "raised"]
    value: Any = None
    traceback: str = ""


def run_ranks(
    work: Work[Result],
    size: int,
    on_report: Callable[[int, Any], None] = lambda rank, value: None,
    silence_seconds: float = SILENCE_SECONDS,
) -> list[Result]:
    """What ``work`` returns on each of ``size`` ranks, in rank order.

    Args:
        on_report: told (rank, what it reported), here in the parent.
        silence_seconds: how long all ranks may say nothing.

    Raises:
        RankError: a rank died or hung.
    """
    if size == 1:
        return [work(0, 1, lambda value: on_report(0, value))]
    pickled = pickle.dumps(work)
    ranks = [_Rank(number, size, pickled) for number in range(size)]
    try:
        for rank in ranks:
            rank.start()
        error = _attend(ranks, on_report, silence_seconds)
        if error is not None:
            _kill(ranks)
            raise error
        return [rank.result for rank in ranks]
    finally:
        _end(ranks)


class _Rank:
    """The parent's view of one rank."""

    def __init__(self, number: int, size: int, work: bytes) -> None:
        self.number, self.begun, self.done, self._closed = number, False, False, False
        self.result: Any = None
        context = multiprocessing.get_context("spawn")
        self.connection, self._theirs = context.Pipe(duplex=False)
        # Not daemonic: environments of a rank may live in worker processes of its own.
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(self._theirs, number, size, work), name=f"rank {number}"
        )

    def start(self) -> None:
        # A child inherits the signal mask: Ctrl-C is then the parent's alone.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._theirs.close()

    def messages(self) -> list[Message]:
        """What it has reported or raised since the last look; notes that it has begun or is done."""
        found = []
        try:
            while self.connection.poll():
                message: Message = self.connection.recv()
                self.begun = True
                if message.kind == "done":
                    self.done, self.result = True, message.value
                found.append(message)
        except (EOFError, OSError):
            self._closed = True
        return found

    def died(self) -> RankError | None:
        """The error that says so, if it is gone without having finished; after all its messages."""
        if self.done or (self.process.is_alive() and not self._closed):
            return None
        self.process.join(GRACE_SECONDS)
        return RankError(f"rank {self.number} ended with exit code {self.process.exitcode}")


def _attend(
    ranks: Sequence[_Rank], on_report: Callable[[int, Any], None], silence: float
) -> Exception | None:
    """Listen until all are done, or one has failed: then its error."""
    heard = time.monotonic()
    while working := [rank for rank in ranks if not rank.done]:
        patience = silence if all(rank.begun for rank in ranks) else min(silence, START_SECONDS)
        if not wait(
            [handle for rank in working for handle in (rank.connection, rank.process.sentinel)],
            max(0.0, heard + patience - time.monotonic()),
        ):
            silent = ", ".join(str(rank.number) for rank in working if rank.begun or patience < silence)
            return RankError(f"nothing was heard from rank {silent} for {patience:g} seconds")
        for rank in working:
            for message in rank.messages():
                heard = time.monotonic()
                if message.kind == "report":
                    on_report(rank.number, message.value)
                elif message.kind == "raised":
                    return _cause([other for other in ranks if other is not rank], rank, message)
            if error := rank.died():
                return error
    return None


def _cause(others: Sequence[_Rank], raised: _Rank, message: Message) -> Exception:
    """Why ranks failed: where one has died, the others only lost their connection to it."""
    error: Exception = message.value
    error.add_note(f"In rank {raised.number}:\n{message.traceback}")
    if isinstance(error, UserError):
        return error
    fallen = wait([rank.process.sentinel for rank in others], _AFTERMATH_SECONDS)
    for rank in others:
        if rank.process.sentinel in fallen:
            # A dying process closes its files one by one, and only then counts as ended.
            rank.process.join(GRACE_SECONDS)
        said = [message.kind for message in rank.messages()]
        if "raised" not in said and (death := rank.died()):
            death.__cause__ = error
            return death
    return error


def _kill(ranks: Sequence[_Rank]) -> None:
    """End all at once. After a failure nothing is worth the wait: what was saved is there."""
    for rank in ranks:
        if rank.process.pid is not None:
            rank.process.kill()


def _end(ranks: Sequence[_Rank]) -> None:
    """End the processes: those that are done at once, the others after their time to save."""
    started = [rank for rank in ranks if rank.process.pid is not None]
    _kill([rank for rank in started if rank.done])
    for rank in started:
        rank.process.terminate()
    until = time.monotonic() + GRACE_SECONDS
    for rank in started:
        rank.process.join(max(0.0, until - time.monotonic()))
        if rank.process.is_alive():
            rank.process.kill()
            rank.process.join()
        rank.connection.close()


def _serve(connection: Connection, rank: int, size: int, pickled: bytes) -> None:
    """What runs in a rank."""
    end_with_parent()
    signal.signal(signal.SIGTERM, stopped)
    serve(connection, rank, size, lambda: pickled)


def serve(connection: Connection, rank: int, size: int, pickled: Callable[[], bytes]) -> None:
    """Do the work and say how it goes. The work arrives pickled, so that what it imports already has a
    guard."""
    try:
        work = pickle.loads(pickled())
        connection.send(Message("begun"))
        result = work(rank, size, lambda value: connection.send(Message("report", value)))
        connection.send(Message("done", result))
    except Exception as error:  # noqa: BLE001  the parent raises it again
        with suppress(OSError):
            connection.send(Message("raised", _portable(error), traceback.format_exc()))


def free_port() -> int:
    """A port of this machine that nobody listens on: where ranks can find each other."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stopped(number: int, frame: object) -> None:
    """SIGTERM as an exception, so that open files and episode logs are closed."""
    sys.exit(1)


def _portable(error: Exception) -> Exception:
    """The error itself, if it survives pickling."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  an exception may refuse in any way
        return RankError(traceback.format_exception_only(error)[-1].strip())
    return copy if isinstance(copy, Exception) else RankError(repr(error))
