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
    """Stop the processes that were started in the block, when it is left by an exception of any kind.

    DVC waits for a stage's process; when a time limit interrupts the waiting, the stage itself would
    run on and write into the next attempt's files.
    """
    before = _descendants(psutil.Process())
    with ExitStack() as unless_done:
        unless_done.callback(lambda: stop(_descendants(psutil.Process()) - before))
        yield
        unless_done.pop_all()


@contextmanager
def process_stopped(pid: int) -> Iterator[None]:
    """Stop this process and all below it, when the block is left by an exception of any kind."""
    process = psutil.Process(pid)
    with ExitStack() as unless_done:
        unless_done.callback(lambda: stop({process, *_descendants(process)}))
        yield
        unless_done.pop_all()


def _descendants(process: psutil.Process) -> set[psutil.Process]:
    return set(process.children(recursive=True))


def stop(processes: set[psutil.Process]) -> None:
    """SIGTERM, then SIGKILL for those that are still there after ``GRACE_SECONDS``."""
    for process in processes:
        _signal(process, "terminate")
    for process in _still_there(processes, GRACE_SECONDS):
        _signal(process, "kill")


def _still_there(processes: set[psutil.Process], seconds: float) -> set[psutil.Process]:
    """Those that have not ended by then.

    How they ended is left for whoever started them to ask. psutil's own waiting takes it away, and then
    ``Popen.wait`` says 0 in another thread: an experiment that was stopped would count as done.
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
