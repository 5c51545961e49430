"""A uvicorn server in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

START_SECONDS = 60.0


@contextmanager
def running(server: uvicorn.Server, listening: socket.socket, kill: bool = False) -> Iterator[str]:
    """The server's address while it answers.

    Args:
        kill: whether connections are cut at the end; otherwise it waits until clients have closed them.
    """
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    ends = time.monotonic() + START_SECONDS
    try:
        while not server.started:
            assert time.monotonic() < ends, f"the server did not start within {START_SECONDS:g} seconds"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit, server.force_exit = True, kill
        thread.join()
