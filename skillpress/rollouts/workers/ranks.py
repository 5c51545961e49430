"""Run one function on N concurrent processes, the ranks. Every part of an experiment uses its cores in this
way.

Ranks are spawned, each calls ``work(rank, size, report)``, and the results are returned in rank order. A
single rank is the calling process itself. The function derives its share from rank and size alone, so the
result depends on the number of ranks and never on the machine's cores.

Every wait has a limit. A rank that dies or raises an exception ends all of them, with an error that names it,
and so do ranks that do not start or that all fall silent. Ranks end with their parent. The parent handles
Ctrl-C: it stops the ranks by SIGTERM, and they get some seconds to save their work.
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
from skillpress.core.log_lines import set_up
from skillpress.core.waiting import heard, tell
from skillpress.rollouts.workers.parent import end_with_parent

Result = TypeVar("Result")
Report = Callable[[Any], None]
"""Sends the parent a report on the rank's progress; the report is pickled."""
Work = Callable[[int, int, Report], Result]
"""``work(rank, size, report)``; pickled if there are several ranks."""

START_SECONDS = 300.0
"""A rank that has not begun by then counts as hung; importing torch on a busy machine takes a minute."""
SILENCE_SECONDS = 7200.0
"""Ranks count as hung if none of them has sent anything for this long. One training step of a large model
takes minutes; a collective that waits for a lost rank gives up after half an hour."""
GRACE_SECONDS = 5.0
"""Time that a rank has to save its work after SIGTERM."""
SIGNALLED = 128
"""The exit code of a process that a signal has ended is this and the signal's number, as in a shell."""
_AFTERMATH_SECONDS = 5.0
"""After a rank has raised an exception, how long to check whether another rank's death was the cause."""


class RankError(RuntimeError):
    """A rank died, hung, or raised an exception that cannot be pickled; the message names the rank."""


@dataclass(frozen=True)
class RankMessage:
    """A rank's message to its parent, pickled."""

    kind: Literal["begun", "waits", "report", "done", "raised"]
    value: Any = None
    traceback: str = ""


def run_ranks(
    work: Work[Result],
    size: int,
    on_report: Callable[[int, Any], None] = lambda rank, value: None,
    silence_seconds: float = SILENCE_SECONDS,
) -> list[Result]:
    """Return the results of ``work`` on each of ``size`` ranks, in rank order.

    Args:
        on_report: called in the parent with (rank, its report).
        silence_seconds: how long all ranks may be silent.

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
        # Not daemonic: environments of a rank may live in its own worker processes.
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(self._theirs, number, size, work), name=f"rank {number}"
        )

    def start(self) -> None:
        # A child inherits the signal mask, so only the parent gets Ctrl-C.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._theirs.close()

    def messages(self) -> list[RankMessage]:
        """New reports and exceptions. It also records that the rank has begun or is done."""
        found = []
        try:
            while self.connection.poll():
                message: RankMessage = self.connection.recv()
                self.begun = True
                if message.kind == "done":
                    self.done, self.result = True, message.value
                found.append(message)
        except (EOFError, OSError):
            self._closed = True
        return found

    def died(self) -> RankError | None:
        """The error if it ended without finishing; all its messages must have been read."""
        if self.done or (self.process.is_alive() and not self._closed):
            return None
        self.process.join(GRACE_SECONDS)
        return RankError(f"rank {self.number} ended with {exit_in_words(self.process.exitcode)}")


def _attend(
    ranks: Sequence[_Rank], on_report: Callable[[int, Any], None], silence: float
) -> Exception | None:
    """Listen until all ranks are done or one has failed; return the error of the latter."""
    last = time.monotonic()
    tell(f"starting {len(ranks)} processes")
    while working := [rank for rank in ranks if not rank.done]:
        patience = silence if all(rank.begun for rank in ranks) else min(silence, START_SECONDS)
        if not wait(
            [handle for rank in working for handle in (rank.connection, rank.process.sentinel)],
            max(0.0, last + patience - time.monotonic()),
        ):
            silent = ", ".join(str(rank.number) for rank in working if rank.begun or patience < silence)
            return RankError(f"nothing was heard from rank {silent} for {patience:g} seconds")
        for rank in working:
            for message in rank.messages():
                last = time.monotonic()
                if message.kind in ("begun", "waits"):
                    if rank.number == 0:  # the others wait for the same
                        tell(message.value or "")
                elif message.kind == "report":
                    on_report(rank.number, message.value)
                elif message.kind == "raised":
                    return _cause([other for other in ranks if other is not rank], rank, message)
            if error := rank.died():
                return error
    return None


def _cause(others: Sequence[_Rank], raised: _Rank, message: RankMessage) -> Exception:
    """The error that made ranks fail. If one has died, the others only lost their connection to it."""
    error: Exception = message.value
    error.add_note(f"In rank {raised.number}:\n{message.traceback}")
    if isinstance(error, UserError):
        return error
    fallen = wait([rank.process.sentinel for rank in others], _AFTERMATH_SECONDS)
    for rank in others:
        if rank.process.sentinel in fallen:
            # A dying process closes its files one by one, and counts as ended only after that.
            rank.process.join(GRACE_SECONDS)
        said = [message.kind for message in rank.messages()]
        if "raised" not in said and (death := rank.died()):
            death.__cause__ = error
            return death
    return error


def _kill(ranks: Sequence[_Rank]) -> None:
    """Kill all ranks at once. After a failure there is nothing to wait for: saved work is already on disk."""
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
    """The main function of a rank's process."""
    end_with_parent()
    set_up()
    signal.signal(signal.SIGTERM, _stopped)
    try:
        work = pickle.loads(pickled)  # here, so that exceptions of its imports are caught
        connection.send(RankMessage("begun"))
        with heard(lambda what: connection.send(RankMessage("waits", what))):
            result = work(rank, size, lambda value: connection.send(RankMessage("report", value)))
        connection.send(RankMessage("done", result))
    except Exception as error:  # noqa: BLE001  the parent raises it again
        with suppress(OSError):
            connection.send(RankMessage("raised", _portable(error), traceback.format_exc()))


def free_port() -> int:
    """A free port of this machine, at which ranks can meet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _stopped(number: int, frame: object) -> None:
    """Turn SIGTERM into an exception, so that open files and episode logs are closed."""
    sys.exit(SIGNALLED + number)


def exit_in_words(code: int | None) -> str:
    """``exit code -9 (SIGKILL)``: a process's exit code, with the name of the signal that ended it, if any. A
    shell and bwrap add 128 to the signal's number."""
    number = 0 if code is None else -code if code < 0 else code - SIGNALLED
    known = number in set(signal.Signals)
    return f"exit code {code} ({signal.Signals(number).name})" if known else f"exit code {code}"


def _portable(error: Exception) -> Exception:
    """Return the error itself if it survives pickling."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  pickling an exception may fail in any way
        return RankError(traceback.format_exception_only(error)[-1].strip())
    return copy if isinstance(copy, Exception) else RankError(repr(error))
