"""The processes on this machine: their children, when they began, how long they waited, how many the kernel
has killed, and their sockets.

The memory that sockets hold in the kernel belongs to no process, so no limit counts it. A unix socket's data
are charged to the sending socket, up to the size of its buffer, and stay at the receiver when the sender is
closed. So each existing socket counts as one buffer, and a socket that takes datagrams counts as a whole
queue of them, whose senders may be closed already.
"""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

KERNEL_COUNTS = Path("/proc/vmstat")


def kernel_kills() -> int | None:
    """Processes that the kernel has killed for lack of memory, on the whole machine; None if unknown."""
    try:
        lines = KERNEL_COUNTS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def children_of_all() -> dict[int, list[int]]:
    """Maps each process on this machine to its children."""
    children = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                status = Path("/proc", entry, "stat").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parent = int(status.rpartition(b")")[2].split()[1])
            children[parent].append(int(entry))
    return children


def tree(root: int, children: Mapping[int, Iterable[int]]) -> list[int]:
    """A process and all its descendants."""
    found = [root]
    for pid in found:  # the list grows meanwhile
        found += children.get(pid, ())
    return found


def start_ticks(process: int) -> int:
    """When a process started, in the kernel's ticks since boot, which do not change when the clock is set. 0
    once the process has been forgotten.
    """
    try:
        status = Path("/proc", str(process), "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(status.rpartition(b")")[2].split()[19])


def waits(processes: Iterable[int]) -> dict[int, float]:
    """Maps each thread of these processes to the seconds for which it was ready to run and had no processor.
    Empty for processes that have ended, and on a kernel that does not count this."""
    found = {}
    for process in processes:
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                counted = Path("/proc", str(process), "task", thread, "schedstat").read_text()
                found[int(thread)] = int(counted.split()[1]) / 1e9
        except (OSError, IndexError):
            continue
    return found


BUFFER_BYTES = 212_992
"""The size of a socket's buffer if the kernel does not report it."""
DATAGRAM, QUEUE = b"0002", 12
"""The kind of datagram sockets in /proc/net/unix, and how many datagrams can wait in one."""
MOST_READ = 1 << 20
"""Maximum number of bytes read from the list of sockets. A longer list exceeds the limit anyway."""


@functools.cache
def socket_bytes() -> int:
    """Bytes that a socket may have sent unread: its buffer, and half as much of a last message."""
    try:
        size = int(Path("/proc/sys/net/core/wmem_default").read_text())
    except (OSError, ValueError):
        size = BUFFER_BYTES
    return size * 3 // 2


def namespace_bytes(process: int) -> int:
    """Maximum number of bytes that all unix sockets in a process's network namespace may hold, including
    those that wait to be accepted and those that travel in messages; 0 once the process has ended."""
    try:
        with open(f"/proc/{process}/net/unix", "rb") as listed:
            lines = listed.read(MOST_READ).splitlines()[1:]
    except OSError:
        return 0
    kinds = [line.split(maxsplit=5)[4] for line in lines if line.count(b" ") > 5]
    return socket_bytes() * sum(QUEUE if kind == DATAGRAM else 1 for kind in kinds)
