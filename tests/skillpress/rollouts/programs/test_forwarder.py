"""The forwarder inside the isolation waits for a busy endpoint, and tells that from one that has ended."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillpress.rollouts.programs import forwarder
from skillpress.rollouts.workers.ranks import free_port

CLIENT = """
import socket, sys
address = "127.0.0.1", int(sys.argv[1])
clients = [socket.create_connection(address, timeout=60) for _ in range(int(sys.argv[2]))]
for number, client in enumerate(clients):
    client.sendall(str(number).encode() + b"\\n")
for number, client in enumerate(clients):
    assert client.makefile().readline() == f"{number}\\n"
    client.close()
"""
"""Opens connections at once, says a line in each, and hears it again."""


@contextmanager
def echoing(path: Path, queue: int, after: float) -> Iterator[None]:
    """A server at a Unix socket with a queue of this length, which accepts nothing for some seconds."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(queue)

        def echo(client: socket.socket) -> None:
            with client:
                while data := client.recv(100):
                    client.sendall(data)

        def serve() -> None:
            time.sleep(after)
            while True:
                client, _ = listener.accept()
                threading.Thread(target=echo, args=[client], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield


def forwarded(path: Path, connections: int) -> subprocess.CompletedProcess[str]:
    """The end of a forwarder whose command opens so many connections at once."""
    port = str(free_port())
    limits = [str(1 << 20), "4096"]
    command = [sys.executable, "-c", CLIENT, port, str(connections)]
    return subprocess.run(
        [sys.executable, "-I", forwarder.__file__, port, str(path), *limits, *command],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_full_queue_of_the_endpoint_is_waited_for(tmp_path: Path) -> None:
    """The forwarder ended with EAGAIN, and after three such ends the episode was lost without a kill."""
    with echoing(tmp_path / "s", queue=1, after=0.3):
        done = forwarded(tmp_path / "s", 20)
    assert done.returncode == 0, done.stderr


def test_more_connections_than_the_forwarder_can_hold_take_turns(tmp_path: Path) -> None:
    with echoing(tmp_path / "s", queue=1024, after=0.0):
        done = forwarded(tmp_path / "s", forwarder.CONNECTIONS + 60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("left", ["nothing", "a socket at which nobody listens"])
def test_where_nobody_listens_the_endpoint_is_at_fault(tmp_path: Path, left: str) -> None:
    path = tmp_path / "s"
    if left != "nothing":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    done = forwarded(path, 1)
    assert done.returncode == forwarder.NO_ENDPOINT
    assert "forwarder: the endpoint's socket cannot be reached: " in done.stderr
