"""HTTP to one server. Every request ends at its deadline, whatever the server does.

The time-outs of HTTP clients count from one byte to the next, so a server that sends a byte now and then can
block its client forever. Here requests are tasks of an event loop in its own thread, and a task is cancelled
when its time is up, even during name resolution, the headers or the body.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import httpx

from skillpress.core.http_clients import async_client, route_to

LARGEST_BODY = 16 * 2**20
"""Maximum number of bytes in a reply; the longest answers have a hundredth of it."""


class NoReplyError(Exception):
    """No complete reply arrived; the message says why."""


@dataclass(frozen=True)
class ServerReply:
    """A server's reply, not interpreted yet."""

    status: int
    headers: Mapping[str, str]
    """Header names in lower case."""
    body: bytes


class ServerConnection:
    """For many threads. It follows no redirects, so prompts and key reach only the named server."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """All requests go to the server at ``url``; ``headers`` are sent with each.

        Raises:
            UserError: an environment variable that concerns this server cannot be used.
        """
        self._route = route_to(url)
        self._loop, self._lock, self._closed = asyncio.new_event_loop(), threading.Lock(), False
        self._client = async_client(self._route, headers)
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat-http", daemon=True)
        self._thread.start()

    def send(self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> ServerReply:
        """Send one request; ``NoReplyError`` if no complete reply arrives in time, or if it is closed."""
        with self._lock:  # tasks scheduled before the loop ends are cancelled by ``close``
            if self._closed:
                raise NoReplyError("the connection is closed")
            sent = asyncio.run_coroutine_threadsafe(self._send(method, url, body, seconds), self._loop)
        try:
            return sent.result()
        except TimeoutError as error:
            raise NoReplyError(f"no complete reply within {seconds:.3g} s{self._route.told}") from error
        except CancelledError as error:
            raise NoReplyError("the connection was closed") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NoReplyError(f"{type(error).__name__}: {error}{self._route.told}") from error

    def close(self) -> None:
        """End all open requests."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        ended.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _send(
        self, method: str, url: str, body: Mapping[str, Any] | None, seconds: float
    ) -> ServerReply:
        async with asyncio.timeout(seconds), self._client.stream(method, url, json=body) as response:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > LARGEST_BODY:
                    raise NoReplyError(f"the reply has more than {LARGEST_BODY >> 20} MiB")
            return ServerReply(response.status_code, dict(response.headers), bytes(content))

    async def _end(self) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._client.aclose()
