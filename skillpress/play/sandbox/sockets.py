"""What sockets may hold in the kernel: memory that belongs to no process, so that no limit counts it.

A unix socket's data are charged to the socket that sent them, up to the size of its buffer, and stay where
they were received when the sender is closed. So each socket that exists answers for one buffer, and one that
takes datagrams for a whole queue of them, whose senders may be gone.
"""

from __future__ import annotations

import functools
from pathlib import Path

BUFFER_BYTES = 212_992
"""The size of a socket's buffer where the kernel does not say."""
DATAGRAM, QUEUE = b"0002", 12
"""How /proc/net/unix names sockets that take datagrams, and how many of these wait in one."""
MOST_READ = 1 << 20
"""Bytes of the list of sockets. A longer list is too much anyway."""


@functools.cache
def socket_bytes() -> int:
    """The most that one socket may have sent before it is read. Its last message may exceed the buffer by
    half of it."""
    try:
        size = int(Path("/proc/sys/net/core/wmem_default").read_text())
    except (OSError, ValueError):
        size = BUFFER_BYTES
    return size * 3 // 2


def namespace_bytes(process: int) -> int:
    """What all unix sockets in a process's network namespace may hold, with those that wait to be accepted
    and those that travel in messages; 0 once it has ended."""
    try:
        with open(f"/proc/{process}/net/unix", "rb") as listed:
            lines = listed.read(MOST_READ).splitlines()[1:]
    except OSError:
        return 0
    kinds = [line.split(maxsplit=5)[4] for line in lines if line.count(b" ") > 5]
    return socket_bytes() * sum(QUEUE if kind == DATAGRAM else 1 for kind in kinds)
