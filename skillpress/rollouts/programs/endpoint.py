"""The recording endpoint: an HTTP server for the programs of this process.

``/e/KEY/v1/...`` and ``/v1/...`` with the key as API key (``Authorization: Bearer``, ``x-api-key``,
``x-goog-api-key``) are the same. The server has a thread of its own and answers from memory; the work between
request and answer is done by its clients and the engine. It listens on a Unix socket as well, which is the
only way out of an isolated program.

No client is trusted. The server checks the key before it reads the body and counts bytes while they arrive.
Every episode has a budget of its own, so that one program cannot use up the resources of the others. Web
pages are refused.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from skillpress.core.errors import UserError
from skillpress.core.web import PageGuard, Patience, server_of
from skillpress.rollouts.programs.forms import Form, forms
from skillpress.rollouts.programs.forms.chat import weights
from skillpress.rollouts.programs.forms.reading import vendor_error
from skillpress.rollouts.programs.requests import ModelRequest, RefusedRequestError
from skillpress.rollouts.programs.session import Refusal, Session, gone

START_SECONDS = 30.0
LONGEST_SOCKET = 107
"""The kernel's maximum number of bytes in a Unix socket's path."""
MODEL = "policy"
"""The name of the one model; programs may ask for any name."""
REMEMBERED = 100_000
"""The number of keys of ended episodes that are remembered; older keys are unknown."""
KEYS = ("x-api-key", "x-goog-api-key")
"""The headers other than ``Authorization`` in which clients send their key."""
RETRIES = "x-stainless-retry-count"
"""The header in which the vendors' clients number their attempts."""
LARGEST_BODY = 16 << 20
"""Maximum number of bytes in a request's body: some four million tokens. A parsed body can use 20 times as
much memory."""
MALFORMED = (AttributeError, TypeError, LookupError, ValueError, RecursionError)
"""Exceptions that a value of another type than the vendor documents can cause."""


class Endpoint:
    """A server for any number of episodes; a context manager."""

    def __init__(self, socket_path: Path | None = None, connections: int = 4096) -> None:
        """Args:
        socket_path: a Unix socket to listen on as well; None for none.
        connections: maximum number of open connections."""
        if socket_path is not None and len(os.fsencode(socket_path)) > LONGEST_SOCKET:
            raise UserError(
                f"{socket_path}: a socket's path has at most {LONGEST_SOCKET} bytes; set TMPDIR to a folder "
                "with a shorter path"
            )
        self._sessions: dict[str, Session] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._tcp]
        if socket_path is not None:
            unix = socket.socket(socket.AF_UNIX)
            unix.bind(str(socket_path))
            socket_path.chmod(0o666)  # isolated programs run as another user; its folder keeps others out
            unix.listen(128)
            self._sockets.append(unix)
        served = ("/v1/models", "/v1beta/models")
        routes = [Route(f"{place}{path}", self._models) for path in served for place in ("", "/e/{key}")]
        # Claude Code asks for the head of its base before the first message.
        routes += [Route(path, _head, methods=["HEAD"]) for path in ("/", "/e/{key}", "/e/{key}/")]
        for form in forms():
            served_here = [
                (form.path, self._serving(form, False)),
                (form.stream_path, self._serving(form, True)),
                (form.count_path, self._counting(form)),
            ]
            for path, serve in served_here:
                for place in (form.version, f"/e/{{key}}{form.version}", "/e/{key}") if path else ():
                    routes.append(Route(place + path, serve, methods=["POST"]))
        patience = Patience(connections=connections)
        guarded = PageGuard(Starlette(routes=routes))
        self._server = server_of(guarded, patience, lifespan="off", timeout_keep_alive=60)
        self._ready, self.loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError(f"the endpoint's server has not started within {START_SECONDS:g} seconds")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The base of all URLs, ``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self._tcp.getsockname()[1]}"

    def open(self) -> Session:
        """A new episode with a key of its own."""
        session = Session(self.loop)
        self._sessions[session.key] = session
        return session

    def end(self, session: Session, reason: Refusal = gone) -> None:
        """End an episode: its open and late requests are refused."""
        session.close(reason)
        self._retire(session.key)

    def renew(self, session: Session) -> None:
        """Give an episode a new key and begin it again. Requests of its last program that the server has not
        read yet are refused, so they cannot be mistaken for requests of the new program.
        """
        self._retire(session.key)
        session.begin_again()
        self._sessions[session.key] = session

    def close(self) -> None:
        """End all episodes and the server."""
        for session in list(self._sessions.values()):
            self.end(session)
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(START_SECONDS)
        for each in self._sockets:
            each.close()

    def _retire(self, key: str) -> None:
        if self._sessions.pop(key, None) is not None:
            self._ended[key] = None
            while len(self._ended) > REMEMBERED:
                self._ended.popitem(last=False)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.call_soon(self._ready.set)
            self.loop.run_until_complete(self._server.serve(sockets=self._sockets))
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def _session(self, request: Request) -> Session:
        """The episode that a request belongs to.

        Raises:
            RefusedRequestError: no episode has its key, or the episode has ended.
        """
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        headers = (request.headers.get(name) for name in KEYS)
        key = request.path_params.get("key") or next(filter(None, headers), bearer)
        if key in self._sessions:
            return self._sessions[key]
        raise (
            gone()
            if key in self._ended
            else RefusedRequestError("no episode has this key", code="invalid_api_key", status=401)
        )

    async def _models(self, request: Request) -> Response:
        try:
            self._session(request)
        except RefusedRequestError as refused:
            return _json(vendor_error(refused), refused.status)
        # One list in the vendors' three forms.
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "skillpress"}
        model |= {"type": "model", "display_name": MODEL, "created_at": "1970-01-01T00:00:00Z"}
        google = {"name": f"models/{MODEL}", "displayName": MODEL}
        google_list = [google | {"supportedGenerationMethods": ["generateContent", "countTokens"]}]
        return _json({"object": "list", "data": [model], "has_more": False, "models": google_list})

    def _counting(self, form: Form) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            try:
                with self._session(request).budget.body() as count:
                    body = await _body(request, count)
                    wanted = read_request(form, body.get("generateContentRequest") or body)
                    tokens = round(wanted.size * self._session(request).tokens_per_character)
            except RefusedRequestError as refused:
                await _pass_over(request)
                return _json(form.error(refused), refused.status, _headers(refused))
            except ClientDisconnect:
                return Response(status_code=400)
            return _json(form.count(tokens))

        return serve

    def _serving(self, form: Form, streams: bool) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            try:
                with self._session(request).budget.body() as count:
                    body = await _body(request, count)
                    wanted = read_request(form, body)
                    # The program may have begun again while its body came. Nothing else runs on this thread
                    # until the request is in the queue: its key is still valid there.
                    session = self._session(request)
                    with session.budget.responses(wanted.number), _watched(request) as left:
                        replies = await session.ask(wanted, _is_retry(request), left)
            except RefusedRequestError as refused:
                await _pass_over(request)
                return _json(form.error(refused), refused.status, _headers(refused))
            except ClientDisconnect:
                return Response(status_code=400)
            identity = session.key[-8:] + wanted.digest[:16]
            model = str(body.get("model") or request.path_params.get("model") or MODEL)
            if streams or body.get("stream"):
                # The answer is whole already. Sending it event by event would cost a thread's turn for each.
                events = "".join(form.stream(identity, model, wanted, replies))
                return Response(events, headers=_warnings(wanted), media_type="text/event-stream")
            answer = form.write(identity, model, wanted, replies)
            answer["skillpress"] = {"weights": weights(replies)}
            return _json(answer, headers=_warnings(wanted))

        return serve


async def _head(request: Request) -> Response:
    return Response()


async def _body(request: Request, count: Callable[[int], None]) -> dict[str, Any]:
    """The body as an object.

    Args:
        count: called with the number of bytes of each part before it is kept; raises if they are too many.
    """
    raw = bytearray()
    async for part in request.stream():
        if len(raw) + len(part) > LARGEST_BODY:
            raise RefusedRequestError(f"the request has more than {LARGEST_BODY >> 20} MiB", status=413)
        count(len(part))
        raw += part
    try:
        body = orjson.loads(raw)
    except ValueError as error:
        raise RefusedRequestError(f"the request is not JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise RefusedRequestError(
            f"the request's body is a {type(body).__name__}, must be an object", code="invalid_json"
        )
    return body


async def _pass_over(request: Request) -> None:
    """Read the rest of a refused body and keep nothing, so that the client receives the refusal. A client
    that sends more than the limit of a body does not receive it.
    """
    passed = 0
    with suppress(ClientDisconnect, RuntimeError):  # RuntimeError: all of it was read
        async for part in request.stream():
            passed += len(part)
            if passed > LARGEST_BODY:
                return


def read_request(form: Form, body: dict[str, Any]) -> ModelRequest:
    """Parse a body in one of the vendors' forms as a request; RefusedRequestError if it cannot be read."""
    try:
        wanted = form.read(body)
        wanted.digest  # noqa: B018  kept; it fails for tools that are nested too deeply
        return wanted
    except RefusedRequestError:
        raise
    except MALFORMED as error:
        raise RefusedRequestError(
            f"the request is malformed: {type(error).__name__}: {error}", code="invalid_value"
        ) from None


@contextmanager
def _watched(request: Request) -> Iterator[Callable[[], bool]]:
    """Watch whether a request's client leaves before its answer is ready; its body has been read."""
    watch = asyncio.ensure_future(request.receive())

    def left() -> bool:
        return watch.done() and not watch.cancelled()

    try:
        yield left
    finally:
        watch.cancel()


def _is_retry(request: Request) -> bool:
    return request.headers.get(RETRIES, "0") not in ("", "0")


def _headers(refused: RefusedRequestError) -> dict[str, str]:
    """Headers that tell the vendors' clients whether to retry. The connection is closed if unread bytes of
    the body may be left on it.
    """
    again = {"x-should-retry": "true" if refused.status in (429, 503) else "false"}
    return again | ({"connection": "close"} if refused.status in (401, 413, 429) else {})


def _warnings(wanted: ModelRequest) -> dict[str, str]:
    overruled = ", ".join(wanted.overruled)
    return {"x-skillpress-overruled": overruled} if overruled else {}


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content), status, headers, media_type="application/json")
