"""End a process together with the one that started it, however the latter ends.

A process killed by ``kill -9`` cannot notify its children, so each child watches its parent, in two ways.
Linux kills the child when the thread that started it ends (``PR_SET_PDEATHSIG``), whatever the child is
doing. In addition, a thread in each child watches the parent. On other systems than Linux this is the only
way, and it also works for an ancestor that started the child through a shell. A process of
``multiprocessing`` uses only the watching thread, since the thread that started it may end before the pool
that it belongs to.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import wait

import psutil

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.2
"""Interval of checks on an ancestor, if the system can wait only for child processes."""


def end_with_parent() -> None:
    """End this process of ``multiprocessing`` when its parent has ended."""
    parent = parent_process()
    assert parent is not None
    sentinel = parent.sentinel
    _end_after(lambda: wait([sentinel]))


def end_with(ancestor: int) -> None:
    """End this process when ``ancestor`` or this process's direct parent has ended; end it at once if one
    already has.

    Args:
        ancestor: pid of the process that started this one, possibly through a shell.
    """
    die_with_parent()
    _end_after(_until_ended(ancestor))
    # Checked only now that every later end is noticed: the ancestor may have ended before.
    if ancestor not in _ancestors():
        end()


def _ancestors() -> Iterator[int]:
    """This process's parent, that one's parent, and so on. psutil's ``parents`` compares their ages by the
    clock, which may be set meanwhile."""
    pid = os.getppid()
    with suppress(psutil.Error):
        while pid > 0:
            yield pid
            pid = psutil.Process(pid).ppid()


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends; another program that this
    process becomes inherits that. Does nothing on other systems than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end() -> None:
    """End this process now. Everything worth keeping is already on disk."""
    os.kill(os.getpid(), signal.SIGKILL)


def _end_after(wait_for_it: Callable[[], object]) -> None:
    def watch() -> None:
        wait_for_it()
        end()

    threading.Thread(target=watch, name="ends with its parent", daemon=True).start()


def _until_ended(pid: int) -> Callable[[], object]:
    """Wait until a process has ended or is a zombie. It is identified now, because its pid may be reused."""
    try:
        handle = select.poll()
        handle.register(os.pidfd_open(pid), select.POLLIN)
        return handle.poll
    except ProcessLookupError:
        return lambda: None
    except (AttributeError, OSError):
        return _polling(pid)  # another system, an old kernel, or a container that forbids it


def _polling(pid: int) -> Callable[[], object]:
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return lambda: None

    def poll() -> None:
        with suppress(psutil.NoSuchProcess):
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(_POLL_SECONDS)

    return poll
