"""The uvicorn server, with a deadline for everything that it waits for.

uvicorn itself waits forever for the rest of a request and for a client that does not read its answer, and it
accepts any number of connections. Here a request must arrive whole before a deadline, clients must keep
reading, and the number of connections is limited. The application decides how long a WebSocket may be idle;
uvicorn closes those whose client does not answer its pings.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class Patience:
    """How long a server waits for its clients, and how many it accepts."""

    request_seconds: float = 30.0
    """Time for a whole request, from the connection or from the first byte of a further request."""
    reading_seconds: float = 30.0
    """How long a client may stop reading while an answer waits for it."""
    connections: int = 512
    """The most open connections; further ones are closed at once."""


class _Config(uvicorn.Config):
    """uvicorn's settings, with the limits that its connections read."""

    def __init__(self, app: ASGIApp, patience: Patience, **settings: Any) -> None:
        super().__init__(app, http=_Connection, **settings)
        self.patience = patience


class _Deadline:
    """Aborts a connection after a time, unless it is stopped before."""

    def __init__(self, connection: asyncio.Transport, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the clock; does nothing if it is running."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._connection.abort)

    def stop(self) -> None:
        """Stop the clock until the next start."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Connection(H11Protocol):
    """One connection. A WebSocket leaves this class with its handshake."""

    config: _Config

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock for the first request."""
        super().connection_made(transport)
        patience = self.config.patience
        self._request = _Deadline(transport, patience.request_seconds)
        self._reading = _Deadline(transport, patience.reading_seconds)
        if len(self.connections) > patience.connections:
            transport.abort()
        self._request.start()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request, and stop the clock when the request is complete."""
        self._request.start()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request.stop()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to a WebSocket, whose request is complete."""
        self._request.stop()
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """Start the clock: the client is slow to read."""
        super().pause_writing()
        self._reading.start()

    def resume_writing(self) -> None:
        """Stop the clock: the client reads again."""
        self._reading.stop()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, even if the client has not read the rest of an answer."""
        super().timeout_keep_alive_handler()
        self._reading.start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        super().connection_lost(exc)
        self._request.stop()
        self._reading.stop()


def server_of(app: ASGIApp, patience: Patience = Patience(), **settings: Any) -> uvicorn.Server:
    """A server of an application, also with ``uvicorn.Config``'s settings; ``run(sockets=[...])`` returns
    after Ctrl-C or SIGTERM."""
    ours: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    return uvicorn.Server(_Config(app, patience, **ours | settings))
