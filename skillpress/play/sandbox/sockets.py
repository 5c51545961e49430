"""The memory that sockets may hold in the kernel. It belongs to no process, so no limit counts it.

A unix socket's data are charged to the sending socket, up to the size of its buffer, and stay at the receiver
when the sender is closed. So each existing socket counts as one buffer, and a socket that takes datagrams
counts as a whole queue of them, whose senders may be closed already.
"""

from __future__ import annotations

import functools
from pathlib import Path

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
