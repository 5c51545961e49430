"""Open files and sockets of this process."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress


def held_descriptors() -> Counter[str]:
    """Maps kinds of open files to their numbers, without those under /proc, which the watchdog opens and
    closes continually."""
    kinds: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if not target.startswith("/proc"):
                kinds[target.split(":")[0]] += 1
    return kinds
