"""Questions about processes that are about to end, without a race between two checks of one process."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil


def runs(pid: int) -> bool:
    """Whether a process with this pid exists and is not a zombie; it may end during the check."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def assert_end(pids: Iterable[int], seconds: float) -> None:
    """All of them end within this many seconds."""
    left, deadline = list(pids), time.monotonic() + seconds
    while left := [pid for pid in left if runs(pid)]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)
