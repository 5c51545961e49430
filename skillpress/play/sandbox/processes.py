"""The processes on this machine, their children, and the number that the kernel has killed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

KERNEL_COUNTS = Path("/proc/vmstat")


def kernel_kills() -> int | None:
    """Number of processes that the kernel has killed for lack of memory since it started, in any memory
    cgroup of this machine; None if the kernel does not count them."""
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
