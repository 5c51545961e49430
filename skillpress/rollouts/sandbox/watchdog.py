"""The host's watch over what no limit inside can bound: the memory of many processes, and the number of
files.

One thread checks all sandboxes and isolated programs of this process in one pass over /proc. All processes
that are isolated, even after many forks or in a new session, remain below bwrap's process in the
process tree, since orphans become children of process 1 inside.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from skillpress.rollouts.sandbox.held import Held
from skillpress.rollouts.sandbox.limits import Limits
from skillpress.rollouts.sandbox.processes import children_of_all, kernel_kills, tree

LOOK_SECONDS = 0.1
COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:")
"""Lines of /proc/PID/status that are counted, in KiB. Pages of files such as libraries are shared by all."""


class Watched(Protocol):
    """Isolated processes."""

    @property
    def pid(self) -> int:
        """The outermost process, below which all others are."""

    def held(self, inside: Sequence[int]) -> Held:
        """Resources that they hold, except the memory of the processes ``inside``."""

    def kill(self, reason: str) -> None:
        """Kill them all without waiting. If it is called several times, the first reason counts."""


class Watchdog:
    """Ends isolated processes that exceed their limits."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._watched: dict[Watched, Limits] = {}
        self._changed = threading.Condition()
        self.kernel_kills = kernel_kills()
        """The result of ``processes.kernel_kills`` at the last check, or when the last sandbox was added."""
        self._thread = threading.Thread(target=self._work, name="sandbox-watchdog", daemon=True)
        self._thread.start()

    @property
    def works(self) -> bool:
        """Whether it belongs to this process and has not failed."""
        return self.owner == os.getpid() and self._thread.is_alive()

    def watch(self, process: Watched, limits: Limits) -> None:
        """Check this sandbox from now on."""
        with self._changed:
            self.kernel_kills = kernel_kills()
            self._watched[process] = limits
            self._changed.notify()

    def forget(self, process: Watched) -> None:
        """Stop checking a sandbox that has ended."""
        with self._changed:
            self._watched.pop(process, None)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._watched)
                watched = dict(self._watched)
            try:
                self._look(watched)
            except BaseException:  # otherwise they would no longer be watched
                for process in watched:
                    process.kill("The host could not look at its memory and files.")
                raise
            time.sleep(LOOK_SECONDS)

    def _look(self, watched: Mapping[Watched, Limits]) -> None:
        self.kernel_kills = kernel_kills()
        children = children_of_all()
        for process, limits in watched.items():
            if reason := excess(held_by(process, children), limits):
                process.kill(reason)
                self.forget(process)


def excess(held: Held, limits: Limits) -> str:
    """The limit that is exceeded, in words; empty if there is none."""
    if held.memory_bytes > limits.memory_mb << 20:
        return f"All processes together used more than {limits.memory_mb} MB of memory, sockets counted."
    if held.inodes > limits.inodes:
        return f"There were more than {limits.inodes} files and folders."
    if held.disk_bytes > limits.disk_mb << 20:
        return f"Its files together held more than {limits.disk_mb} MB."
    if held.threads > limits.processes:
        return f"There were more than {limits.processes} processes and threads."
    return ""


def held_by(process: Watched, children: Mapping[int, Iterable[int]]) -> Held:
    """The resources held by isolated processes, with all their memory; nothing if they have ended."""
    inside = tree(process.pid, children)[1:]
    memory = sum(_memory(pid) for pid in inside)
    held = process.held(inside)
    return replace(held, memory_bytes=memory + held.memory_bytes)


def _memory(pid: int) -> int:
    try:
        lines = Path("/proc", str(pid), "status").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(COUNTED))


_watchdog: Watchdog | None = None


def watchdog() -> Watchdog:
    """This process's watchdog. A forked child gets its own, and a failed one is replaced."""
    global _watchdog
    if _watchdog is None or not _watchdog.works:
        _watchdog = Watchdog()
    return _watchdog
