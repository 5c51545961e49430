"""The main loop inside a worker process: do the jobs of each message and answer them in one message.

The process ends with its parent, however the parent ends: a step that never ends would not notice that its
parent is gone. It also ends with its first exception, because an engine's state is unknown after one. The
parent handles Ctrl-C; here it is blocked from the start.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from ctypes import c_longlong
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import psutil

from skillpress.play.workers.parent import end_with_parent

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
    """Serve until the parent closes the connection.

    Args:
        begun: the index of the current job, shared with the parent.
        make: makes the function that does a job.
    """
    end_with_parent()
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
