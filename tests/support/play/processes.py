"""What tests ask about processes that are about to end, without a race between two looks at one."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil


def runs(pid: int) -> bool:
    """Whether a process of this number is there and no zombie; it may end while one looks."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def assert_end(pids: Iterable[int], seconds: float) -> None:
    """All of them end within so many seconds."""
    left, deadline = list(pids), time.monotonic() + seconds
    while left := [pid for pid in left if runs(pid)]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)
