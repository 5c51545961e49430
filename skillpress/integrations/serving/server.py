"""OpenEnv's server: a WebSocket at ``/ws``, one session per connection, and a few HTTP endpoints.

The limits apply to every client that can reach the port. There is no password: the server listens on loopback
by default, and refuses web pages (``PageGuard``), since a browser lets any page connect to this machine. A
request that does not arrive completely in time is cut off. A session that exceeds its rate has to wait, and
so does its sender. A session ends if it is idle too long or sends too large a message. Its slot is free again
once its environment has answered the last request.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from skillpress.core.errors import UserError
from skillpress.core.web import PageGuard, Patience
from skillpress.core.web import server_of as patient_server
from skillpress.integrations.serving import messages
from skillpress.integrations.serving.host import EnvironmentHost
from skillpress.integrations.serving.messages import RefusedMessageError
from skillpress.integrations.serving.session import ServedSession, SessionSettings

WAITING_MESSAGES = 4
"""The most messages of one connection that are read from the network and not yet processed."""
GRACE_SECONDS = 5
"""The time that sessions have to end when the server does."""
TRY_AGAIN_LATER, GOING_AWAY = 1013, 1001
"""Close codes of a WebSocket."""


@dataclass(frozen=True)
class ServingLimits:
    """The limits of one server."""

    sessions: int = 64
    """The most sessions at once."""
    message_bytes: int = 65_536
    """The largest message that a client may send."""
    messages_per_second: float = 200.0
    """The most messages of one session; a second's worth may arrive at once."""
    idle_seconds: float = 1800.0
    """How long a session may stay silent. Trainers are silent while they update weights."""
    request_seconds: float = 30.0
    """The time in which a request, or the request for a session, must arrive completely."""

    @property
    def full(self) -> str:
        """The message that refuses a session because all sessions are in use."""
        return (
            f"all {self.sessions} sessions are taken; one that says nothing for {self.idle_seconds:g} "
            "seconds ends, so try again later"
        )


@dataclass(frozen=True)
class Metadata:
    """The answer to ``GET /metadata``."""

    name: str
    description: str
    version: str


class _Door:
    """The endpoints."""

    def __init__(
        self, offer: SessionSettings, host: EnvironmentHost, about: Metadata, limits: ServingLimits
    ) -> None:
        self._offer, self._host, self._about, self._limits = offer, host, about, limits
        self._free = list(range(limits.sessions))
        """Free slots as a heap: low numbers are reused first, and their environments with them."""
        heapify(self._free)

    async def play(self, connection: WebSocket) -> None:
        """Serve one connection, from its first message to its end."""
        await connection.accept()
        try:
            if not self._free:
                await self._turn_away(connection)
                return
            slot = heappop(self._free)
            session = ServedSession(self._offer, self._host, slot)
            try:
                await self._converse(connection, session)
            finally:
                await asyncio.shield(asyncio.ensure_future(self._leave(session, slot)))
        except (WebSocketDisconnect, asyncio.CancelledError):
            return  # the client is gone, or the server ends

    async def health(self, request: Request) -> Response:
        """``GET /health``."""
        return JSONResponse({"status": "healthy"})

    async def metadata(self, request: Request) -> Response:
        """``GET /metadata``."""
        return JSONResponse(vars(self._about))

    async def schema(self, request: Request) -> Response:
        """``GET /schema``."""
        return JSONResponse(messages.schemas())

    async def openapi(self, request: Request) -> Response:
        """``GET /openapi.json``: the HTTP endpoints; episodes are played over the WebSocket alone."""
        said = {"200": {"description": "JSON"}}
        paths = {path: {"get": {"responses": said}} for path in ("/health", "/metadata", "/schema")}
        info = {"title": self._about.name, "version": self._about.version}
        tools = {"/mcp": {"post": {"responses": said}}}
        return JSONResponse({"openapi": "3.1.0", "info": info, "paths": {**paths, **tools}})

    async def tools(self, request: Request) -> Response:
        """``POST /mcp``: the protocol's JSON-RPC request for an environment's tools; ours have none."""
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > self._limits.message_bytes:
                    return Response(status_code=413)
            asked = json.loads(body)
        except ClientDisconnect:
            return Response(status_code=408)  # too late for the client to read it
        except (ValueError, RecursionError):
            return _rpc(None, error={"code": -32700, "message": "Invalid JSON"})
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            return _rpc(None, error={"code": -32600, "message": "Invalid request"})
        if asked["method"] == "tools/list":
            return _rpc(asked.get("id"), result={"tools": []})
        return _rpc(asked.get("id"), error={"code": -32601, "message": "there are no tools; play at /ws"})

    async def _turn_away(self, connection: WebSocket) -> None:
        most = self._limits.sessions
        await connection.send_text(
            messages.error("CAPACITY_REACHED", self._limits.full, active_sessions=most, max_sessions=most)
        )
        await connection.close(TRY_AGAIN_LATER)

    async def _converse(self, connection: WebSocket, session: ServedSession) -> None:
        inbox: asyncio.Queue[str | None] = asyncio.Queue(WAITING_MESSAGES)
        reader = asyncio.create_task(_read(connection, inbox))
        try:
            async for text in self._paced(inbox):
                try:
                    answer = await session.answer(messages.read(text))
                except RefusedMessageError as refused:
                    answer = messages.error(refused.code, str(refused))
                if answer is None:
                    await connection.close()
                    return
                await connection.send_text(answer)
        except TimeoutError:
            text = f"the session said nothing for {self._limits.idle_seconds:g} seconds and has ended"
            await connection.send_text(messages.error("SESSION_ERROR", text))
            await connection.close(GOING_AWAY)
        finally:
            reader.cancel()

    async def _paced(self, inbox: asyncio.Queue[str | None]) -> AsyncIterator[str]:
        """The messages in order, no faster than the limit allows.

        Raises:
            TimeoutError: no message came for too long.
        """
        pace, due = 1 / self._limits.messages_per_second, time.monotonic()
        while (text := await asyncio.wait_for(inbox.get(), self._limits.idle_seconds)) is not None:
            now = time.monotonic()
            due = max(due, now - 1) + pace
            await asyncio.sleep(max(0.0, due - now))
            yield text

    async def _leave(self, session: ServedSession, slot: int) -> None:
        await session.close()
        heappush(self._free, slot)


def make_app(
    offer: SessionSettings, host: EnvironmentHost, about: Metadata, limits: ServingLimits
) -> Starlette:
    """The server's endpoints as an ASGI application."""
    door = _Door(offer, host, about, limits)
    return Starlette(
        routes=[
            WebSocketRoute("/ws", door.play),
            Route("/health", door.health),
            Route("/metadata", door.metadata),
            Route("/schema", door.schema),
            Route("/openapi.json", door.openapi),
            Route("/mcp", door.tools, methods=["POST"]),
        ],
        middleware=[Middleware(PageGuard)],
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any free one.

    Raises:
        UserError: the address is in use, or is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"--host {host} --port {port}: cannot listen there ({error}); port 0 takes a free one"
        ) from error


class _Announced(uvicorn.Server):
    """Announces when the server answers requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then announce it; nothing is announced if the start fails."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def server_of(
    app: Starlette,
    limits: ServingLimits,
    lifespan: Literal["on", "off"] = "off",
    ready: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """The server for the application: ``run(sockets=[...])`` returns after Ctrl-C or SIGTERM.

    Args:
        lifespan: whether the application has work of its own at its start and end.
        ready: called once, as soon as requests are answered.
    """
    patient = patient_server(
        app,
        Patience(request_seconds=limits.request_seconds, connections=2 * limits.sessions + 64),
        ws_max_size=limits.message_bytes,
        ws_per_message_deflate=False,  # texts are short, and a small compressed bomb stays out
        lifespan=lifespan,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Announced(patient.config, ready)


async def _read(connection: WebSocket, inbox: asyncio.Queue[str | None]) -> None:
    """Read messages even while one is being answered, so that a slow step does not leave pongs unread."""
    while (received := await connection.receive())["type"] != "websocket.disconnect":
        await inbox.put(received.get("text") or "")
    await inbox.put(None)


def _rpc(number: Any, **said: Any) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": number, **said})
