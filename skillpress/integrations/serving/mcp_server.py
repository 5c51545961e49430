"""An environment as tools of the Model Context Protocol, so that any harness can play it.

    start(task or seed)        -> episode, observation, admissible actions
    act(episode, action)       -> observation, reward, done, outcome
    leave(episode)

The official ``mcp`` package speaks the protocol, over streamable HTTP (``/mcp``) or over the standard streams
of a process that the harness starts. A refusal is a tool's error, whose text the model reads.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TextIO

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
)
from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpress.core.errors import UserError
from skillpress.core.web import PageGuard
from skillpress.integrations.serving.episodes import Episodes, SeenStep
from skillpress.integrations.serving.messages import RefusedMessageError, ResetArguments, checked
from skillpress.integrations.serving.server import Metadata, ServingLimits

PATH = "/mcp"
"""Where streamable HTTP is served."""
HOW = (
    "Call `start` to begin an episode, then `act` with its name until `done` is true. One action a call, in "
    "the wording of `admissible` if it is not empty."
)


class StartArguments(BaseModel):
    """Begin an episode. Without arguments the next task in turn is played."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: str | None = Field(None, description="The name of a task.")
    seed: int | None = Field(None, ge=0, description="The number of a task; the same number, the same task.")


class ActArguments(BaseModel):
    """Take one action in an episode."""

    model_config = ConfigDict(extra="forbid", strict=True)

    episode: str = Field(description="The name that `start` returned.")
    action: str = Field(description="The action in the environment's wording.")


class LeaveArguments(BaseModel):
    """Give up an episode before its end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    episode: str = Field(description="The name that `start` returned.")


@dataclass(frozen=True)
class _Kind:
    """One tool."""

    arguments: type[BaseModel]
    call: Callable[[Episodes, Any], Awaitable[SeenStep | None]]

    def described(self, name: str) -> Tool:
        schema = self.arguments.model_json_schema()
        told = schema.pop("description")
        output = SeenStep.model_json_schema(mode="serialization") if name != "leave" else None
        return Tool(name=name, description=told, input_schema=schema, output_schema=output)


async def _start(episodes: Episodes, wanted: StartArguments) -> SeenStep:
    return await episodes.start(ResetArguments(seed=wanted.seed, task_id=wanted.task))


async def _act(episodes: Episodes, wanted: ActArguments) -> SeenStep:
    return await episodes.act(wanted.episode, wanted.action)


async def _leave(episodes: Episodes, wanted: LeaveArguments) -> None:
    await episodes.leave(wanted.episode)


KINDS: Mapping[str, _Kind] = {
    "start": _Kind(StartArguments, _start),
    "act": _Kind(ActArguments, _act),
    "leave": _Kind(LeaveArguments, _leave),
}


def tools_of(prepared: Future[Episodes], about: Metadata) -> Server[dict[str, Any]]:
    """The server of the tools.

    Args:
        prepared: the episodes, or the ``UserError`` that prevents them. Tools are listed before it is done,
            since harnesses wait a few seconds for a server, and some environments take a minute.
    """

    async def listed(context: object, wanted: object) -> ListToolsResult:
        return ListToolsResult(tools=[kind.described(name) for name, kind in KINDS.items()])

    async def called(context: object, wanted: CallToolRequestParams) -> CallToolResult:
        try:
            episodes = await asyncio.shield(asyncio.wrap_future(prepared))
            found = await _call(episodes, wanted.name, wanted.arguments or {})
        except (RefusedMessageError, UserError) as refused:
            return CallToolResult(content=[_text(str(refused))], is_error=True)
        if found is None:
            return CallToolResult(content=[_text("left")])
        return CallToolResult(content=[_text(found.model_dump_json())], structured_content=found.model_dump())

    return Server(
        about.name,
        version=about.version,
        instructions=f"{about.description} {HOW}",
        on_list_tools=listed,
        on_call_tool=called,
    )


def http_app(server: Server[dict[str, Any]], limits: ServingLimits) -> Starlette:
    """The tools over streamable HTTP, as an ASGI application with a lifespan.

    Clients of the protocol of 2025 open sessions. Their number and their silence have the limits of episodes.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=limits.message_bytes,
        session_idle_timeout=limits.idle_seconds,
        max_sessions=limits.sessions,
        # The page guard below refuses foreign pages and names, on every interface.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.add_middleware(_SessionGuard, limits=limits)
    app.add_middleware(PageGuard)
    return app


class _SessionGuard:
    """Bounds sessions that are abandoned, and tells their clients why they are refused.

    A client of the protocol of 2025 opens a stream with GET for messages that it did not ask for. The package
    considers a session busy while the stream is open, so a client that never calls again would keep its place
    forever. Our tools send no unrequested messages, so the stream is refused, as the protocol allows.
    """

    def __init__(self, app: ASGIApp, limits: ServingLimits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and put the package's refusals into words."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD"):
            said = _refusal(405, "this server sends nothing unasked; call its tools with POST")
            said.headers["Allow"] = "POST, DELETE"
            await said(scope, receive, send)
            return
        reasons = {503: self._limits.full}
        if "mcp-session-id" in Headers(scope=scope):
            silent = f"one that says nothing for {self._limits.idle_seconds:g} seconds ends"
            reasons[404] = f"this session has ended, or never was ({silent}); open another"
        refused = False

        async def answered(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] in reasons:
                refused = True
                status = message["status"]
                await _refusal(status, reasons[status])(scope, receive, send)
            elif not refused:
                await send(message)

        await self._app(scope, receive, answered)


def _refusal(status: int, text: str) -> JSONResponse:
    """A refusal in the form from which the package's client takes its error's text."""
    error = {"code": INVALID_REQUEST, "message": text}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)


@dataclass(frozen=True)
class StandardStreams:
    """This process's standard streams, reserved for the protocol."""

    source: TextIO
    sink: TextIO

    @classmethod
    def take(cls) -> StandardStreams:
        """Move the streams away, so that whatever else prints, here or in a process that starts later, writes
        to the standard error and reads nothing."""
        source = open(os.dup(0), encoding="utf-8", errors="replace")  # noqa: SIM115  for the process's life
        sink = open(os.dup(1), "w", encoding="utf-8")  # noqa: SIM115
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.flush()
        os.dup2(2, 1)
        return cls(source, sink)

    def serve(self, server: Server[dict[str, Any]]) -> None:
        """Serve the tools until the other end closes the stream."""
        anyio.run(self._serve, server)

    async def _serve(self, server: Server[dict[str, Any]]) -> None:
        async with stdio_server(anyio.wrap_file(self.source), anyio.wrap_file(self.sink)) as (heard, said):
            await server.run(heard, said, server.create_initialization_options())


async def _call(episodes: Episodes, name: str, arguments: Mapping[str, Any]) -> SeenStep | None:
    kind = KINDS.get(name)
    if kind is None:
        raise RefusedMessageError("UNKNOWN_TYPE", f"there is no tool {name!r}; there are {', '.join(KINDS)}")
    return await kind.call(episodes, checked(kind.arguments, name, arguments))


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
