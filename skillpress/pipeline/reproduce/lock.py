"""One run at a time in a workspace, and one process at a time in a stage of it.

DVC has its own lock, but a second run fails on it at once. Here the second run waits, says for which process,
and gives up after a set time. The lock is the kernel's (``flock``). So it becomes free when its holder and
all processes that inherited it have ended, even after ``kill -9``. The file's text only says which process
holds it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from skillpress.core.errors import UserError
from skillpress.core.storage import make_folder, named_disk_errors

_LOG = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
DEFAULT_WAIT_SECONDS = float(os.environ.get("SKILLPRESS_LOCK_WAIT", "3600"))


class LockTimeoutError(UserError):
    """Another process held the workspace, or the stage, for longer than the waiting time."""


def workspace_lock(workspace: Path) -> Path:
    """The lock of the process that reproduces a workspace."""
    return workspace / ".dvc" / "tmp" / "skillpress.lock"


def stage_lock(stage: str, workspace: Path = Path()) -> Path:
    """The lock of the process that runs a stage in a workspace.

    The lock has the stage's name and not its key, which may change while a stage runs: two processes of one
    stage would write the same outputs, whatever their keys.
    """
    return workspace / ".dvc" / "tmp" / "stages" / f"{stage}.lock"


@contextmanager
def exclusive(lock: Path, what: str, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Iterator[int]:
    """Hold the lock file, which protects ``what``, in the block; wait at most ``wait_seconds`` for it.

    Yields:
        The file's descriptor. A child process that inherits it holds the lock too, until it ends.

    Raises:
        LockTimeoutError: another process still holds it; the message says which one, and since when.
    """
    make_folder(lock.parent)
    with named_disk_errors(lock):
        opened = lock.open("a+", encoding="utf-8")
    with opened as file:
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
            _LOG.info("waiting for %s, which uses %s", _holder(file), what)
            announced = True
        time.sleep(RETRY_SECONDS)  # only signals could limit a wait for flock, and the flows use those


def _holder(file: TextIO) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return f"process {holder['pid']} (since {holder['since']})"
    except ValueError:  # it has just taken the lock and has not written its pid yet
        return "another process"
