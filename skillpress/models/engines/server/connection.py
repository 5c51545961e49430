"""One vLLM server: its calls, each with a deadline, whether it fits the experiment, and whether it works now.

Mismatches that would otherwise go unnoticed are refused before anything is sent: another version of vLLM
(results depend on it, and the fingerprints of stages that sample name this one), another type than the
policy's, and responses that would be cut short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import torch

from skillpress.core.errors import UserError
from skillpress.models.engines.server import VLLM

CONNECT_SECONDS = 30.0
HEALTH_SECONDS = 30.0
"""A server whose cores are all busy takes seconds to report its health."""
Calls = tuple[tuple[str, dict[str, Any] | None], ...]
"""Paths with their bodies."""
SHOWN = 300
"""Maximum number of characters of a server's message that an error repeats."""


class ServerFailedError(Exception):
    """A server did not answer or reported a failure; another server may succeed."""


class RejectedRequestError(Exception):
    """A server reports that the request itself is wrong; no other server will accept it."""


class Server:
    """One server and its state as this client sees it; used in one event loop."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self.url, self._client = url, client
        self.in_flight = 0
        """Number of our requests that the server is working on."""
        self.lost: str | None = None
        """Why the server gets no requests until the next update of the weights; None if it works."""

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count one request in flight."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def post(self, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        """Send a request and return the JSON of the answer; None if the answer is empty.

        Raises:
            ServerFailedError: no answer within ``seconds``, a broken connection, or an error of the server.
            RefusedError: the server reports that the request is wrong.
        """
        return await self._call("POST", path, body, seconds)

    async def get(self, path: str, seconds: float) -> Any:
        """Same as :meth:`post`, for a GET request."""
        return await self._call("GET", path, None, seconds)

    async def well(self) -> bool:
        """Whether the server reports within ``HEALTH_SECONDS`` that it is healthy."""
        try:
            await self.get("/health", HEALTH_SECONDS)
        except (ServerFailedError, RejectedRequestError):
            return False
        return True

    async def take(self, update: Mapping[str, Any], seconds: float) -> None:
        """Make the server stage weights, as ``update`` tells its transfer; errors as for :meth:`post`."""
        await self.post("/update_weights", {"update_info": update}, seconds)

    async def update(self, name: str, seconds: float, transfer: Callable[[], Awaitable[None]]) -> None:
        """Make the server sample from new weights from now on, under the name ``name``.

        Responses in progress pause meanwhile and continue with the new weights.

        Args:
            transfer: makes the server stage the weights, see :meth:`take`.

        Raises:
            ServerFailedError: the update failed, or took longer than ``seconds`` in total.
            RefusedError: the server reports that the weights do not fit, or does not know these calls.
        """
        before: Calls = (
            ("/init_weight_transfer_engine", {"init_info": {}}),
            ("/pause?mode=keep", None),
            ("/start_weight_update", {}),
        )
        after: Calls = (
            ("/finish_weight_update", {"weight_version": name}),
            ("/reset_prefix_cache?reset_running_requests=true", None),
            ("/resume", None),
        )
        try:
            async with asyncio.timeout(seconds):
                for path, body in before:
                    await self.post(path, body, seconds)
                await transfer()
                for path, body in after:
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
            raise RejectedRequestError(f"{path}: {response.status_code} {response.text[:SHOWN]}")
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise ServerFailedError(
                f"{path}: answered {response.text[:SHOWN]!r}, which is not JSON"
            ) from error


async def refuse_unfit(server: Server, longest: int, dtype: torch.dtype) -> None:
    """Return if the server takes ``longest`` tokens of prompt and response, in the policy's ``dtype``.

    Raises:
        UserError: it does not answer or does not fit; the message says how to start one that does.
    """
    version, takes, types = await _what_it_is(server)
    if version.partition("+")[0] != VLLM:  # the part after the plus names a build
        raise UserError(
            f"engine.urls: {server.url} runs vLLM {version}; results are recorded as those of {VLLM}, and "
            f"only its calls are used here: install {VLLM} there"
        )
    wanted = str(dtype).removeprefix("torch.")
    if set(types) != {wanted}:
        raise UserError(
            f"engine.urls: {server.url} samples in {', '.join(sorted(set(types)))}, but policy.dtype is "
            f"{wanted}: start it with --dtype {wanted}"
        )
    if takes < longest:
        raise UserError(
            f"engine.urls: {server.url} accepts {takes} tokens of prompt and response; the experiment needs "
            f"{longest}: start it with --longest {longest}"
        )


async def _what_it_is(server: Server) -> tuple[str, int, list[str]]:
    """(vLLM's version, the maximum number of tokens, the type in which each of its workers samples)."""
    try:
        version = await server.get("/version", CONNECT_SECONDS)
        models = await server.get("/v1/models", CONNECT_SECONDS)
        workers = await server.post("/collective_rpc", {"method": "served_dtype"}, CONNECT_SECONDS)
        return str(version["version"]), int(models["data"][0]["max_model_len"]), list(workers["results"])
    except (ServerFailedError, RejectedRequestError, KeyError, IndexError, TypeError) as error:
        raise UserError(
            f"engine.urls: {server.url} is not a vLLM server that answers as `skillpress serve-model` starts "
            f"them ({error}); start one: skillpress serve-model --model FOLDER"
        ) from error
