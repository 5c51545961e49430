"""What a node of a Ray cluster does for a gang: it starts the ranks and hands on what they say.

Ray copies this class to the node, where it may find another revision of this package, or none. It imports
nothing but the standard library and Ray, and every rank is a process of its own that starts in the folder
which it is told, with the code that lies there.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait


@dataclass(frozen=True)
class RankStart:
    """How one rank is started."""

    rank: int
    arguments: tuple[str, ...]
    """Of ``python -m``; the descriptor to speak to and the process to end with are added."""
    variables: dict[str, str]
    """Set in its environment."""
    folder: str
    """Where it starts."""
    log: str
    """The file that takes what it prints, relative to the folder."""


LAST_WORDS_SECONDS = 5.0
"""What the actor has, after its node's end, to say that its ranks have ended too."""


class RankHost:
    """The actor on one node."""

    def __init__(self) -> None:
        """End with the node: Ray itself leaves actors behind where its node process was killed."""
        above = os.pidfd_open(os.getppid())

        def watch() -> None:
            select.select([above], [], [])
            time.sleep(LAST_WORDS_SECONDS)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()

    def place(self) -> tuple[str, str, int]:
        """(the node's id, its address, a port there that nobody listens on)."""
        import ray

        with socket.socket() as probe:
            probe.bind(("", 0))
            port = int(probe.getsockname()[1])
        return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), port

    def run(self, starts: list[RankStart]) -> Iterator[tuple[int, bytes | int]]:
        """Start the ranks; yields (rank, what it says), and (rank, exit code) when it has ended."""
        talking = {start.rank: self._start(start) for start in starts}
        while talking:
            ready = wait([connection for connection, _ in talking.values()])
            for rank, (connection, process) in list(talking.items()):
                if connection not in ready:
                    continue
                try:
                    yield rank, connection.recv_bytes()
                except (EOFError, OSError):
                    del talking[rank]
                    yield rank, process.wait()

    @staticmethod
    def _start(start: RankStart) -> tuple[Connection, subprocess.Popen[bytes]]:
        reading, writing = os.pipe()
        # A rank must outlive neither this process nor the node's, which is right above.
        numbers = [str(writing), str(os.getppid())]
        log = os.path.join(start.folder, start.log)
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *start.arguments, *numbers],
                cwd=start.folder, env=os.environ | start.variables, pass_fds=[writing],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        os.close(writing)
        return Connection(reading, writable=False), process
