"""What stands around one interpreter, whichever way it is built."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

Seen = dict[str, object]
"""What the interpreter reports of its walls before it runs anything."""


@dataclass(frozen=True)
class Held:
    """What a sandbox holds now beside the memory of its processes."""

    inodes: int
    disk_bytes: int
    """Only where no file system of a fixed size holds them; else 0."""
    kernel_bytes: int
    """What its sockets may hold in the kernel."""


class Walls(ABC):
    """Of one sandbox. Built before its processes, removed after their end."""

    home: str
    """The working folder, as code inside names it."""
    whole: ClassVar[Seen]
    """What the interpreter must report."""

    @classmethod
    @abstractmethod
    def probe(cls) -> None:
        """Try whether such walls can be built here.

        Raises:
            SandboxUnavailableError: they cannot; the message names the cause and the cure.
        """

    @abstractmethod
    def start(self, setting: dict[str, object], descriptor: int) -> subprocess.Popen[bytes]:
        """Start the interpreter with its end of the socket; stdout and stderr are pipes.

        Raises:
            SandboxUnavailableError: something that this needs is missing.
        """

    @abstractmethod
    def explain(self, said: str) -> str:
        """What the outermost process said when it gave up, with cause and cure where they are known."""

    @abstractmethod
    def last(self, runner: int) -> int:
        """The process with whose end all of the sandbox is gone, given the interpreter's."""

    @abstractmethod
    def held(self, last: int, processes: Sequence[int]) -> Held:
        """What it holds beside the memory of its processes; nothing once the sandbox has ended.

        Args:
            last: the process with whose end all is gone.
            processes: all of it.
        """

    def kill(self, outer: int) -> None:  # noqa: B027  most walls fall with their outermost process
        """Kill what would outlive the outermost process, which still lives."""

    def remove(self) -> None:  # noqa: B027
        """Clear away what is left of them on the host."""

    def gaps(self, seen: object) -> str:
        """What is missing in the walls that the interpreter sees around it; empty if they are whole."""
        if not isinstance(seen, dict):
            return "the interpreter did not say what it sees"
        return ", ".join(
            f"{name} is {seen.get(name)!r} and not {right!r}"
            for name, right in self.whole.items()
            if seen.get(name) != right
        )
