"""A process that ends with the one that started it, however that one ends.

Who is killed by ``kill -9`` can tell nobody, so its children find out themselves, in two ways. Linux
kills them when the thread that started them ends (``PR_SET_PDEATHSIG``), whatever they are doing at
that moment. And a thread in each of them watches: elsewhere than on Linux it is the only way, and it
sees ancestors too, where a shell stands in between. A process of ``multiprocessing`` only watches,
since the thread that started it may end before the pool that it belongs to.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import wait

import psutil

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.2
"""How often an ancestor is looked at where the system cannot wait for a process that is no child."""


def end_with_parent() -> None:
    """End this process of ``multiprocessing`` when the one that started it has ended."""
    parent = parent_process()
    assert parent is not None
    sentinel = parent.sentinel
    _end_after(lambda: wait([sentinel]))


def end_with(ancestor: int) -> None:
    """End this process when ``ancestor`` has ended, or the process right above this one: at once where
    it has ended already.

    Args:
        ancestor: the number of the process that started this one, if need be through a shell.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _end_after(_until_ended(ancestor))
    # Only now, when no end goes unnoticed any more: it may have come before all this.
    if ancestor not in {process.pid for process in psutil.Process().parents()}:
        end()


def end() -> None:
    """End this process now; what it had to keep it has written."""
    os.kill(os.getpid(), signal.SIGKILL)


def _end_after(wait_for_it: Callable[[], object]) -> None:
    def watch() -> None:
        wait_for_it()
        end()

    threading.Thread(target=watch, name="ends with its parent", daemon=True).start()


def _until_ended(pid: int) -> Callable[[], object]:
    """What waits until a process has ended, a zombie included; it is identified now, not by its number
    alone, which may be given to another."""
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
