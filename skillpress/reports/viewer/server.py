"""The viewer's server: the page and its requests, for browsers on this machine and its own pages only.

It listens on loopback, and refuses requests whose ``Host`` or ``Origin`` is not the printed address
(``PageGuard``). It changes nothing: it only answers GET requests from an open index.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpress.core.errors import UserError
from skillpress.core.web import PageGuard, server_of
from skillpress.reports.viewer.catalogue import NoSuchEpisodeError, RolloutCatalogue
from skillpress.reports.viewer.page_file import live_page
from skillpress.reports.viewer.query import QueryError, parse

LOOPBACK = "127.0.0.1"
PORT = 8765
"""The default port if it is free."""
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of every answer. The page itself says which scripts and styles belong to it."""


def application(catalogue: RolloutCatalogue, port: int) -> ASGIApp:
    """The ASGI application of the viewer; requests must name its port."""
    page = live_page()

    def shown(request: Request) -> Response:
        return HTMLResponse(page)

    def page_of(request: Request) -> Any:
        return catalogue.page(parse(request.query_params.multi_items()))

    def prompt(request: Request) -> Any:
        return catalogue.prompt(request.path_params["name"], request.path_params["position"])

    asked: dict[str, Callable[[Request], Any]] = {
        "/api/health": lambda request: {"ok": True},
        "/api/about": lambda request: catalogue.about(),
        "/api/episodes": page_of,
        "/api/episode/{name}": lambda request: catalogue.episode(request.path_params["name"]),
        "/api/episode/{name}/prompt/{position:int}": prompt,
        "/api/dictionary": lambda request: catalogue.dictionary(),
    }
    answers = [Route(path, _answered(answer, catalogue)) for path, answer in asked.items()]
    routes = [Route("/", shown), *answers]
    guards = [Middleware(Protected), Middleware(PageGuard, pages="own", port=port)]
    return Starlette(routes=routes, middleware=guards)


def page_application(page: str, port: int) -> ASGIApp:
    """The ASGI application of a page that holds everything it shows."""
    guards = [Middleware(Protected), Middleware(PageGuard, pages="own", port=port)]
    return Starlette(routes=[Route("/", lambda request: HTMLResponse(page))], middleware=guards)


class Protected:
    """Adds the protective headers to every answer, including refusals."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, guarded)


def _answered(answer: Callable[[Request], Any], catalogue: RolloutCatalogue) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        try:
            with catalogue.answering():
                return _json(answer(request))
        except NoSuchEpisodeError as error:
            return _error(str(error), 404)
        except QueryError as error:
            return _error(str(error), 400)
        except UserError as error:  # a file that was replaced, an episode with a gap
            return _error(str(error), 409)

    return respond


def _error(message: str, status: int) -> Response:
    return _json({"error": message}, status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def listen(port: int | None) -> socket.socket:
    """A socket on loopback. Without a port it takes ``PORT``, or a free one if that is taken.

    Raises:
        UserError: the port is taken.
    """
    wanted: Sequence[int] = (PORT, 0) if port is None else (port,)
    for number in wanted:
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((LOOPBACK, number))
            opened.listen()
            return opened
        except OSError as error:
            opened.close()
            trouble = error
    raise UserError(f"--port: {port} cannot be used ({trouble.strerror}); name another port")


def serve(shown: RolloutCatalogue | str, opened: socket.socket) -> None:
    """Serve a catalogue, or a page, until the process receives the signal to end."""
    port = opened.getsockname()[1]
    made = page_application(shown, port) if isinstance(shown, str) else application(shown, port)
    server_of(made, lifespan="off").run(sockets=[opened])
