"""All that a server waits for ends at its deadline, not later: half requests, unread answers, connections."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPResponse

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.sync.client import connect

from skillpress.core.web import Patience, server_of

WAIT = 60.0
"""Seconds within which the server must react; it takes less than one."""
SHORT = Patience(request_seconds=0.5, reading_seconds=0.5)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = 64 * 2**20
"""Bytes of an answer: more than any kernel buffers for a client that does not read."""


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the length of a body; ``/slow`` waits a second first, ``/large`` sends a large answer."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.send", "text": "still here"})
        await receive()
        return
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message["body"]), message["more_body"]
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5)
    answer = bytes(LARGE) if scope["path"] == "/large" else json.dumps(length).encode()
    headers = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


@contextmanager
def running(patience: Patience) -> Iterator[tuple[int, uvicorn.Server]]:
    """The port of a server of ``application``, and the server."""
    server = server_of(application, patience, lifespan="off", timeout_graceful_shutdown=1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listening.getsockname()[1], server
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with running(SHORT) as (number, _):
        yield number


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), WAIT)


def body_of(connection: socket.socket) -> bytes:
    """The body of the next answer."""
    answer = HTTPResponse(connection)
    answer.begin()
    return answer.read()


def is_cut(connection: socket.socket) -> bool:
    """Waits until the server has ended the connection."""
    try:
        return connection.recv(65_536) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GE",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nten bytes.",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    ],
)
def test_half_a_request_is_cut_off(port: int, half: bytes) -> None:
    with closing(opened(port)) as connection:
        connection.sendall(half)
        assert is_cut(connection)


def test_half_a_second_request_on_a_connection_is_cut_off_too(port: int) -> None:
    with closing(opened(port)) as connection:
        for _ in range(2):
            connection.sendall(GET)
            assert body_of(connection) == b"0"
        connection.sendall(GET[:20])
        assert is_cut(connection)


def test_single_bytes_now_and_then_do_not_put_the_deadline_off(port: int) -> None:
    with closing(opened(port)) as connection:
        connection.settimeout(0.05)
        until = time.monotonic() + WAIT
        header = b"GET / HTTP/1.1\r\nX: " + b"x" * 2000
        ended = False
        for byte in header:
            try:
                connection.send(bytes([byte]))
                ended = is_cut(connection)
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                ended = True
            if ended or time.monotonic() > until:
                break
        assert ended


def test_a_request_that_is_whole_may_take_longer_to_answer(port: int) -> None:
    with closing(opened(port)) as connection:
        connection.sendall(GET.replace(b"/ ", b"/slow "))
        assert body_of(connection) == b"0"


def test_a_websocket_is_not_under_the_deadline_of_requests(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/", proxy=None) as connection:
        time.sleep(2 * SHORT.request_seconds)
        connection.send("")
        assert connection.recv(WAIT) == "still here"


@pytest.mark.parametrize("read", [0, 3 * 2**20])
def test_an_answer_that_is_not_read_on_is_given_up(read: int) -> None:
    with running(SHORT) as (port, server), closing(opened(port)) as connection:
        connection.sendall(GET.replace(b"/ ", b"/large "))
        while read > 0:
            read -= len(connection.recv(65_536))
        until = time.monotonic() + WAIT
        while server.server_state.connections:
            assert time.monotonic() < until, "the connection is still there"
            time.sleep(0.05)


def test_connections_beyond_the_limit_are_closed_and_the_others_are_answered() -> None:
    with running(Patience(connections=3)) as (port, server):
        first = [opened(port) for _ in range(3)]
        until = time.monotonic() + WAIT
        while len(server.server_state.connections) < 3:
            assert time.monotonic() < until
            time.sleep(0.01)
        with closing(opened(port)) as further:
            assert is_cut(further)
        for connection in first:
            connection.sendall(GET)
            assert body_of(connection) == b"0"
            connection.close()
