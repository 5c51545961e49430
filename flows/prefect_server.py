"""Prefect's server with a guard in front of it, and with SQLite transactions that take turns.

    python -m flows.prefect_server

It answers only programs and its own pages (``PageGuard``). Prefect's server alone accepts requests under any
name and from any page, and a page that registers a deployment makes the worker run its commands. The page
``/open#SECRET`` logs a browser in.

Prefect's server works on many transactions at once. Its own handling of SQLite then fails in two ways, and
longer timeouts make the second worse:

- Most transactions begin "deferred": they take the write lock at their first write. If one has read before
  and another has written since, SQLite refuses at once with "database is locked". It does not wait, because
  the data that was read is out of date.
- A transaction that does wait, waits inside SQLite for up to a minute. Meanwhile Python may collect a cursor
  that an earlier failure left on that connection. The collection waits for the connection and holds the
  interpreter's lock. The whole process then stops, including the transaction that holds SQLite's lock, until
  the minute is over and all waiting transactions fail.

Here a transaction waits for its turn in Python, and takes SQLite's lock when it begins ("immediate"). Reads
outside transactions do not wait. PostgreSQL is not affected.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

from prefect.server.api.server import create_app
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
from prefect.settings import get_current_settings
from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from skillpress.core.web import PageGuard, server_of

TURN_SECONDS = 60.0
"""After this time a transaction tries SQLite's own lock. It may be nested in the one that it waits for."""
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@asynccontextmanager
async def turn() -> AsyncGenerator[None, None]:
    """The right to write, first come first served."""
    lock = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    mine = False
    with suppress(TimeoutError):
        mine = await asyncio.wait_for(lock.acquire(), TURN_SECONDS)
    try:
        yield
    finally:
        if mine:
            lock.release()


@asynccontextmanager
async def begin_immediately(
    self: AioSqliteConfiguration, session: AsyncSession, with_for_update: bool = False
) -> AsyncGenerator[AsyncSessionTransaction, None]:
    """Replaces ``AioSqliteConfiguration.begin_transaction``."""
    async with turn(), session.begin() as transaction:
        token = SQLITE_BEGIN_MODE.set("IMMEDIATE")
        try:
            await session.connection()  # sends BEGIN
        finally:
            SQLITE_BEGIN_MODE.reset(token)  # sessions opened inside this one only read
        yield transaction


def take_turns() -> None:
    """Make the SQLite transactions of this process take turns."""
    AioSqliteConfiguration.begin_transaction = begin_immediately  # type: ignore[method-assign]


LOG_IN = b"""<!doctype html><title>Prefect</title><script>
localStorage.setItem("prefect-password", btoa(decodeURIComponent(location.hash.slice(1))));
location.replace("/");
</script>"""
"""Does the same as Prefect's own login page. A browser sends the part after # to no server."""


class LogInPage:
    """ASGI middleware that answers ``GET /open``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer this page, and pass everything else on."""
        asked = scope["type"] == "http" and scope["path"] == "/open"
        await (HTMLResponse(LOG_IN) if asked else self._app)(scope, receive, send)


def serve(sockets: list[socket.socket] | None = None) -> None:
    """Serve on these open ports, or at the address in Prefect's settings, until Ctrl-C or SIGTERM."""
    take_turns()
    settings = get_current_settings().server.api
    server_of(
        PageGuard(LogInPage(create_app(final=True)), pages="own"),
        host=settings.host,
        port=settings.port,
        timeout_keep_alive=settings.keepalive_timeout,
        ws_ping_interval=settings.websocket_ping_interval,
        ws_ping_timeout=settings.websocket_ping_timeout,
    ).run(sockets)


if __name__ == "__main__":
    serve()
