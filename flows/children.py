"""Processes that must not outlive the flow that started them."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil

GRACE_SECONDS = 10.0


@contextmanager
def children_stopped() -> Iterator[None]:
    """Stop the processes that were started in the block if an exception of any kind leaves it.

    DVC waits for a stage's process. If a time limit interrupts the waiting, the stage itself would keep
    running and write into the next attempt's files.
    """
    before = _descendants(psutil.Process())
    with ExitStack() as unless_done:
        unless_done.callback(lambda: stop(_descendants(psutil.Process()) - before))
        yield
        unless_done.pop_all()


@contextmanager
def process_stopped(pid: int) -> Iterator[None]:
    """Stop this process and all its descendants if an exception of any kind leaves the block."""
    process = psutil.Process(pid)
    with ExitStack() as unless_done:
        unless_done.callback(lambda: stop({process, *_descendants(process)}))
        yield
        unless_done.pop_all()


def _descendants(process: psutil.Process) -> set[psutil.Process]:
    return set(process.children(recursive=True))


def stop_all() -> None:
    """Stop all processes that this one has started, and their descendants."""
    stop(_descendants(psutil.Process()))


def stop(processes: set[psutil.Process]) -> None:
    """Send SIGTERM, then SIGKILL to those that are still running after ``GRACE_SECONDS``."""
    for process in processes:
        _signal(process, "terminate")
    for process in _still_there(processes, GRACE_SECONDS):
        _signal(process, "kill")


def _still_there(processes: set[psutil.Process], seconds: float) -> set[psutil.Process]:
    """The processes that have not ended by then.

    The exit code is left for the code that started the process. psutil's own waiting would take it away, so
    that ``Popen.wait`` in another thread would return 0: a stopped experiment would count as done.
    """
    running: dict[int, psutil.Process] = {}
    ends, handles = time.monotonic() + seconds, select.poll()
    with ExitStack() as opened:
        for process in processes:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(process.pid)
                opened.callback(os.close, handle)
                handles.register(handle, select.POLLIN)
                running[handle] = process
        while running and (left := ends - time.monotonic()) > 0:
            for ended, _ in handles.poll(1000 * left):
                handles.unregister(ended)
                del running[ended]
    return set(running.values())


def _signal(process: psutil.Process, how: str) -> None:
    with suppress(psutil.NoSuchProcess):
        getattr(process, how)()
