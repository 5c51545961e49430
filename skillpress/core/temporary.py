"""Temporary folders of a process. What a killed process leaves, the next one removes.

Each folder holds a file that its process has locked. The kernel frees the lock when the process ends, however
it ends, so a folder whose lock can be taken belongs to no process any more.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from skillpress.core.storage import remove_tree

LOCK = ".lock"


class TemporaryFolder:
    """A new folder that other users may enter but not list."""

    def __init__(self, kind: str, place: Path | None = None) -> None:
        """Make the folder, and remove folders of this kind whose processes have ended.

        Args:
            kind: what the folder is for, in a word; part of its name.
            place: where the folder is made; None for the usual place of temporary files.
        """
        prefix, place = f"skillpress-{kind}-", place or Path(tempfile.gettempdir())
        _remove_abandoned(place, prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        self.path.chmod(0o711)
        beginning = self.path / f"{LOCK}.new"
        self._lock = os.open(beginning, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        beginning.rename(self.path / LOCK)  # it is never seen without its lock

    def remove(self) -> None:
        """Remove the folder with its content; does nothing the second time."""
        if self._lock >= 0:
            remove_tree(self.path)
            os.close(self._lock)
            self._lock = -1


def _remove_abandoned(place: Path, prefix: str) -> None:
    for folder in place.glob(f"{prefix}*"):
        with suppress(OSError):  # another process is faster, or it belongs to another user
            if folder.lstat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(lock)
