"""What runs inside a worker process: do the jobs of each message, answer them in one.

The process ends with its parent, however that one ends (a step that never ends would not notice that
nobody waits for it), and with its first exception: after one, nobody knows what state an engine is in.
The parent reads Ctrl-C; here it is blocked from the start.
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
"""What the shared counter says until the process is ready for its first job."""


@dataclass(frozen=True)
class Done:
    """All jobs of a message are done."""

    answers: list[bytes]
    """Pickled here one by one, so that a job whose answer cannot be is known."""
    memory: int
    """Resident bytes of the process afterwards."""


@dataclass(frozen=True)
class Raised:
    """A job raised an exception, and this is the process's last message."""

    error: str
    """Its type and message."""
    traceback: str


def serve(connection: Connection, begun: c_longlong, make: Callable[[], Callable[[Any], Any]]) -> None:
    """Serve until the parent hangs up.

    Args:
        begun: shared with the parent: the index of the job being done.
        make: makes the function that does a job.
    """
    end_with_parent()
    try:
        do = make()
    except Exception as error:  # noqa: BLE001  the parent decides what is to be done
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
            except Exception as error:  # noqa: BLE001  the parent decides what is to be done
                connection.send(_raised(error))
                return
        connection.send(Done(answers, process.memory_info().rss))


def _raised(error: Exception) -> Raised:
    return Raised(traceback.format_exception_only(error)[-1].strip(), traceback.format_exc())
