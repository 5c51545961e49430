"""A machine whose processors have other work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Every processor has this many other processes that compute."""
    command = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    # Each has a session of its own, since some kernels share processors out by sessions.
    others = [
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        for _ in range(processes * (os.cpu_count() or 1))
    ]
    try:
        for other in others:
            assert other.stdout is not None and other.stdout.readline()
        yield
    finally:
        for other in others:
            other.kill()
            other.communicate()
