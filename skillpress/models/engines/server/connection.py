"""One vLLM server: its calls, each with a deadline, and whether it can be asked at present."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

CONNECT_SECONDS = 30.0
HEALTH_SECONDS = 30.0
"""A server whose cores are all busy takes seconds to say that it is well."""
SHOWN = 300
"""Characters of a server's message that an error repeats."""


class ServerFailedError(Exception):
    """A server did not answer, or answered that it could not; another may."""


class RefusedError(Exception):
    """A server says that the request itself is wrong; no other will take it."""


class Server:
    """One server, as this client knows it; used in one event loop."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self.url, self._client = url, client
        self.in_flight = 0
        """Requests that it is working on for us."""
        self.lost: str | None = None
        """Why it is asked for nothing until the next update of the weights; None while it is well."""

    @contextmanager
    def working(self) -> Iterator[None]:
        """Counts one request in flight."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def post(self, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        """The JSON that the server answers, None where it answers nothing.

        Raises:
            ServerFailedError: no answer within ``seconds``, a broken connection, or an error of its own.
            RefusedError: it says that the request is wrong.
        """
        return await self._call("POST", path, body, seconds)

    async def get(self, path: str, seconds: float) -> Any:
        """As :meth:`post`."""
        return await self._call("GET", path, None, seconds)

    async def well(self) -> bool:
        """Whether it says so, soon."""
        try:
            await self.get("/health", HEALTH_SECONDS)
        except (ServerFailedError, RefusedError):
            return False
        return True

    async def update(self, weights_url: str, name: str, seconds: float) -> None:
        """Sample from the weights at ``weights_url``, to be called ``name``, from now on.

        Responses that are being sampled stop meanwhile and go on with the new weights.

        Raises:
            ServerFailedError: something went wrong, or took longer than ``seconds`` in all.
            RefusedError: it says that the weights do not fit, or knows no such calls.
        """
        calls: tuple[tuple[str, dict[str, Any] | None], ...] = (
            ("/init_weight_transfer_engine", {"init_info": {}}),
            ("/pause?mode=keep", None),
            ("/start_weight_update", {}),
            ("/update_weights", {"update_info": {"url": weights_url, "seconds": seconds}}),
            ("/finish_weight_update", {"weight_version": name}),
            ("/reset_prefix_cache?reset_running_requests=true", None),
            ("/resume", None),
        )
        try:
            async with asyncio.timeout(seconds):
                for path, body in calls:
                    await self.post(path, body, seconds)
        except TimeoutError:
            raise ServerFailedError(
                f"the update of its weights took longer than {seconds:g} seconds"
            ) from None

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), pool=None)
        try:
            async with asyncio.timeout(seconds):
                response = await self._client.request(method, self.url + path, json=body, timeout=timeout)
        except (TimeoutError, httpx.TimeoutException):
            raise ServerFailedError(f"{path}: no answer within {seconds:g} seconds") from None
        except httpx.HTTPError as error:
            raise ServerFailedError(f"{path}: {type(error).__name__} {error}".strip()) from error
        if response.status_code >= 500:
            raise ServerFailedError(f"{path}: {response.status_code} {response.text[:SHOWN]}")
        if response.status_code >= 400:
            raise RefusedError(f"{path}: {response.status_code} {response.text[:SHOWN]}")
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise ServerFailedError(
                f"{path}: answered {response.text[:SHOWN]!r}, which is no JSON"
            ) from error
