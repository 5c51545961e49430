"""Processes that must not outlive the flow that started them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

GRACE_SECONDS = 10.0


@contextmanager
def children_stopped() -> Iterator[None]:
    """Stop the processes that were started in the block, when it is left by an exception.

    DVC waits for a stage's process; when a time limit interrupts the waiting, the stage itself would
    run on and write into the next attempt's files.
    """
    before = set(psutil.Process().children(recursive=True))
    try:
        yield
    except BaseException:
        stop(set(psutil.Process().children(recursive=True)) - before)
        raise


def stop(processes: set[psutil.Process]) -> None:
    """SIGTERM, then SIGKILL for those that are still there after ``GRACE_SECONDS``."""
    for process in processes:
        _signal(process, "terminate")
    _, stubborn = psutil.wait_procs(processes, timeout=GRACE_SECONDS)
    for process in stubborn:
        _signal(process, "kill")


def _signal(process: psutil.Process, how: str) -> None:
    with suppress(psutil.NoSuchProcess):
        getattr(process, how)()
