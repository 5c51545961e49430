"""uvicorn, with a deadline for everything that it waits for.

uvicorn itself waits without end for the rest of a request and for a client that does not read its answer,
and it accepts any number of connections. Here a request must have arrived whole by a certain moment, clients
must read on, and the number of connections is bounded. How long a WebSocket may be idle is up to the
application; uvicorn ends those whose client does not answer its pings.
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
    """How long a server waits for its clients, and for how many."""

    request_seconds: float = 30.0
    """From the connection, or from the first byte of a further request, until the request is there whole."""
    reading_seconds: float = 30.0
    """How long a client may read nothing of an answer that waits for it."""
    connections: int = 512
    """Open at once; further ones are closed at once."""


class _Config(uvicorn.Config):
    """uvicorn's settings, and the patience that its connections find there."""

    def __init__(self, app: ASGIApp, patience: Patience, **settings: Any) -> None:
        super().__init__(app, http=_Connection, **settings)
        self.patience = patience


class _Deadline:
    """Aborts a connection at a certain moment, unless it is stopped before."""

    def __init__(self, connection: asyncio.Transport, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """From now on; nothing where it has been started already."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._connection.abort)

    def stop(self) -> None:
        """Until it is started again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Connection(H11Protocol):
    """One connection. A WebSocket leaves this class with its handshake."""

    config: _Config

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        patience = self.config.patience
        self._request = _Deadline(transport, patience.request_seconds)
        self._reading = _Deadline(transport, patience.reading_seconds)
        if len(self.connections) > patience.connections:
            transport.abort()
        self._request.start()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request, and stop the clock when the request is there whole."""
        self._request.start()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request.stop()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to a WebSocket, whose request is there whole."""
        self._request.stop()
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """The client is slow to read; it has some time to go on."""
        super().pause_writing()
        self._reading.start()

    def resume_writing(self) -> None:
        """The client has read on."""
        self._reading.stop()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, if need be without the rest of an answer that nobody reads."""
        super().timeout_keep_alive_handler()
        self._reading.start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        super().connection_lost(exc)
        self._request.stop()
        self._reading.stop()


def server_of(app: ASGIApp, patience: Patience = Patience(), **settings: Any) -> uvicorn.Server:
    """A server of an application; ``run(sockets=[...])`` returns after Ctrl-C or SIGTERM.

    Args:
        settings: further ones of ``uvicorn.Config``.
    """
    ours: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    return uvicorn.Server(_Config(app, patience, **ours | settings))
