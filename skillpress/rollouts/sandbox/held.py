"""The resources that a sandbox or an isolated program holds, and how its files are counted."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

BLOCK_BYTES = 512
"""The unit of ``st_blocks``."""


@dataclass(frozen=True)
class Held:
    """The resources that a sandbox holds now."""

    inodes: int
    disk_bytes: int
    """Used disk space; 0 if file systems of a fixed size already limit it."""
    memory_bytes: int
    """Maximum kernel memory that its sockets may hold; the watchdog adds the memory of its processes."""
    threads: int = 0
    """Number of threads; 0 if the kernel limits it."""


def files_in(folders: Sequence[Path], most: int) -> tuple[int, int]:
    """(number of files and folders below these folders, bytes on the disk).

    Counting stops beyond ``most``. A folder that cannot be read counts as more than that.
    """
    inodes, occupied, left = 0, 0, list(folders)
    while left and inodes <= most:
        try:
            for entry in os.scandir(left.pop()):
                inodes += 1
                with suppress(FileNotFoundError):  # removed meanwhile
                    occupied += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
                if entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry.path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # forbidden, or deeper than any path can name
            inodes = sys.maxsize
    return inodes, occupied
