"""One run at a time in a workspace, and one process at a time in a stage of it.

DVC has a lock of its own, but a second run fails on it at once. Here the second waits, says for whom,
and gives up after a set time. The lock is the kernel's (``flock``), so it is gone with its holder and
the processes that this one handed it on to, ``kill -9`` included; the file's text only tells who that
is.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from skillpress.core.errors import UserError

RETRY_SECONDS = 1.0
DEFAULT_WAIT_SECONDS = float(os.environ.get("SKILLPRESS_LOCK_WAIT", "3600"))


class LockTimeoutError(UserError):
    """Another process held the workspace, or the stage, for as long as we were ready to wait."""


def workspace_lock(workspace: Path) -> Path:
    """The lock of the process that reproduces a workspace."""
    return workspace / ".dvc" / "tmp" / "skillpress.lock"


def stage_lock(stage: str, workspace: Path = Path()) -> Path:
    """The lock of the process that runs a stage in a workspace.

    It is named by the stage and not by its key, which may change while a stage runs: two processes of
    one stage would write the same outputs, whatever their keys.
    """
    return workspace / ".dvc" / "tmp" / "stages" / f"{stage}.lock"


@contextmanager
def exclusive(lock: Path, what: str, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Iterator[int]:
    """Hold the lock file for the duration of the block, waiting at most ``wait_seconds`` for it.

    Args:
        what: what the lock protects, for messages.

    Yields:
        The file's descriptor. A child process that inherits it holds the lock too, until it ends.

    Raises:
        LockTimeoutError: somebody else still holds it; the message says who, and since when.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        _acquire(file, what, wait_seconds)
        file.truncate(0)
        json.dump({"pid": os.getpid(), "since": datetime.now().isoformat(" ", "seconds")}, file)
        file.flush()
        yield file.fileno()
        file.truncate(0)


def _acquire(file: TextIO, what: str, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    announced = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if time.monotonic() >= deadline:
            raise LockTimeoutError(
                f"{what} is still in use by {_holder(file)} after {wait_seconds:.0f} s of waiting; "
                "nothing was started. Wait for it or stop it, then run again"
            )
        if not announced:
            print(f"waiting for {_holder(file)}, which uses {what}", file=sys.stderr, flush=True)
            announced = True
        time.sleep(RETRY_SECONDS)  # flock cannot wait with a limit without signals, which flows own


def _holder(file: TextIO) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return f"process {holder['pid']} (since {holder['since']})"
    except ValueError:  # it has only just taken the lock and not signed it yet
        return "another process"
