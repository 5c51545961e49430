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
from multiprocessing.connection import Connection, wait

Start = tuple[int, str, dict[str, str]]
"""How to start one rank: its number, the file for its output, and variables set in its environment."""
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

    def run(
        self, folder: str, arguments: tuple[str, ...], starts: list[Start]
    ) -> Iterator[tuple[int, bytes | int]]:
        """Start the ranks; yield (rank, message), and (rank, exit code) when one has ended.

        Args:
            folder: where the ranks start; the files for their output are relative to it.
            arguments: of ``python -m``; the descriptor for messages and the process to end with are appended.
        """
        talking = {rank: self._start(folder, arguments, log, added) for rank, log, added in starts}
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
    def _start(
        folder: str, arguments: tuple[str, ...], log: str, variables: dict[str, str]
    ) -> tuple[Connection, subprocess.Popen[bytes]]:
        reading, writing = os.pipe()
        # A rank must end with this process and with the node's process, which is its direct parent.
        numbers = [str(writing), str(os.getppid())]
        log = os.path.join(folder, log)
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments, *numbers],
                cwd=folder, env=os.environ | variables, pass_fds=[writing],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        os.close(writing)
        return Connection(reading, writable=False), process
