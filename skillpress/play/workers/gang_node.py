"""A gang's actor on a node of a Ray cluster: it starts the ranks and forwards their messages.

Ray copies this class to the node, which may have another revision of this package, or none. So the class
imports only the standard library and Ray, and every rank is a separate process that starts in the given
folder, with the code in that folder.
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
    """How to start one rank."""

    rank: int
    arguments: tuple[str, ...]
    """Arguments of ``python -m``. The descriptor for messages and the process to end with are appended."""
    variables: dict[str, str]
    """Variables set in its environment."""
    folder: str
    """The folder in which it starts."""
    log: str
    """The file for its output, relative to the folder."""


LAST_WORDS_SECONDS = 5.0
"""Time after its node's end in which the actor can still report that its ranks have ended."""


class RankHost:
    """The actor on one node."""

    def __init__(self) -> None:
        """Make the actor end with its node. Ray itself leaves actors behind if the node process is killed."""
        above = os.pidfd_open(os.getppid())

        def watch() -> None:
            select.select([above], [], [])
            time.sleep(LAST_WORDS_SECONDS)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()

    def place(self) -> tuple[str, str, int]:
        """Return (id of the node, its address, a free port there)."""
        import ray

        with socket.socket() as probe:
            probe.bind(("", 0))
            port = int(probe.getsockname()[1])
        return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), port

    def run(self, starts: list[RankStart]) -> Iterator[tuple[int, bytes | int]]:
        """Start the ranks; yield (rank, message), and (rank, exit code) when one has ended."""
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
        # A rank must end with this process and with the node's process, which is its direct parent.
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
