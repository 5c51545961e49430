"""What the host asks of the walls around one interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

BLOCK_BYTES = 512
"""The unit of ``st_blocks``."""

Seen = dict[str, object]
"""The interpreter's report of its walls, made before it runs anything."""


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


class Walls(ABC):
    """The walls of one sandbox. They are built before its processes start and removed after they end."""

    home: str
    """The path of the working folder inside."""
    whole: ClassVar[Seen]
    """What the interpreter must report."""

    @abstractmethod
    def start(self, setting: dict[str, object], descriptor: int) -> subprocess.Popen[bytes]:
        """Start the interpreter with its end of the socket, and pipes; or ``SandboxUnavailableError``."""

    @abstractmethod
    def explain(self, said: str) -> str:
        """The outermost process's last error message, with the cause and the remedy if they are known."""

    @abstractmethod
    def last(self, runner: int) -> int:
        """The process whose end means that all of the sandbox has ended, given the interpreter's pid."""

    @abstractmethod
    def held(self, last: int, processes: Sequence[int]) -> Held:
        """The resources it holds, apart from the memory of its processes; nothing once the sandbox has ended.

        Args:
            last: the process whose end means that all have ended.
            processes: all its processes.
        """

    def gaps(self, seen: object) -> str:
        """What is missing in the walls that the interpreter reports; empty if they are complete."""
        if not isinstance(seen, dict):
            return "the interpreter did not say what it sees"
        return ", ".join(
            f"{name} is {seen.get(name)!r} and not {right!r}"
            for name, right in self.whole.items()
            if seen.get(name) != right
        )
