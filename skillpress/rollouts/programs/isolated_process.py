"""A running isolated program: its resources, and how it ends with every process that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from skillpress.rollouts.sandbox.gvisor import held_in_gvisor
from skillpress.rollouts.sandbox.held import Held, files_in
from skillpress.rollouts.sandbox.isolation import Kind, bytes_in_root, inodes_in_memory
from skillpress.rollouts.sandbox.limits import Limits
from skillpress.rollouts.sandbox.process import END_SECONDS
from skillpress.rollouts.sandbox.processes import children_of_all, namespace_bytes, tree
from skillpress.rollouts.sandbox.watchdog import watchdog

FORWARDER = "/run/forwarder.py"
IN_MEMORY = ("/", "/tmp", "/dev/shm")
COUNTING_SHARE = 0.02
"""The share of the time in which the files of an isolated program are counted."""


@dataclass(eq=False)
class IsolatedProcess:
    """A process that the watchdog checks from its start on (``Watched``)."""

    process: subprocess.Popen[bytes]
    folders: Sequence[Path]
    """The folders in which it can write."""
    printed: Path
    """The file of its output."""
    limits: Limits
    isolation: Kind
    exceeded: str = ""
    """The limit that it exceeded, in words; empty if it exceeded none."""
    _files: tuple[int, int] = (0, 0)
    """(number of files, bytes on the disk) at the last count."""
    _next_count: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        watchdog().watch(self, self.limits)

    @property
    def pid(self) -> int:
        """See ``Watched``."""
        return self.process.pid

    def held(self, inside: Sequence[int]) -> Held:
        """See ``Watched``. A large folder is counted less often than a small one."""
        began = time.monotonic()
        if began >= self._next_count:
            self._files = files_in(self.folders, self.limits.inodes)
            self._next_count = began + (time.monotonic() - began) / COUNTING_SHARE
        if (
            self.isolation == "gvisor"
        ):  # its kernel is a process, whose memory holds sockets and files in memory
            inodes, occupied = self._files
            with suppress(FileNotFoundError):  # gVisor limits the size of no file that it was handed open
                occupied += self.printed.stat().st_size
            return held_in_gvisor(inside, inodes, occupied)
        if not inside or not os.path.exists(f"/proc/{inside[0]}/root{FORWARDER}"):
            return Held(*self._files, memory_bytes=0)  # bwrap still sees the host's folders
        inodes, occupied = self._files
        return Held(
            inodes + inodes_in_memory(inside[0], IN_MEMORY),
            occupied + bytes_in_root(inside[0]),
            memory_bytes=namespace_bytes(inside[0]),
            threads=sum(map(_threads, inside)),
        )

    def kill(self, reason: str) -> None:
        """See ``Watched``. All others end with the outermost process."""
        self.exceeded = self.exceeded or reason
        if self.process.returncode is None:  # ``Popen.kill`` would collect it
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill bwrap and wait for the first process inside, because the kernel then ends all others. gVisor's
        processes are awaited one by one.

        Raises:
            RuntimeError: it has not ended half a minute later.
        """
        watchdog().forget(self)
        children = children_of_all()
        pids = tree(self.pid, children)[1:] if self.isolation == "gvisor" else children.get(self.pid, [])
        inside = [process for pid in pids if (process := _process(pid))]
        self.process.kill()
        for process in inside:  # one that has only begun would outlive bwrap, in which nothing has run
            with suppress(psutil.Error):
                process.kill()
        self.process.wait(END_SECONDS)
        _, left = psutil.wait_procs(inside, timeout=END_SECONDS)
        if left:
            raise RuntimeError(f"program {left[0].pid} still runs {END_SECONDS:g} s after SIGKILL")


@contextmanager
def opened(printed: Path) -> Iterator[int]:
    """The descriptor of a new file for a program's output."""
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        yield output
    finally:
        os.close(output)


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return 0
