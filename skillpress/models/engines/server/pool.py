"""Requests over several servers: each goes to the server with the fewest, and to another one if that server
fails.

A response is lost if its connection breaks, so a repeated request is still answered only once. A server that
fails gets no requests until the next update of the weights: after a restart it has its initial weights.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from skillpress.core.engine import Completion, Request
from skillpress.models.engines.checks import EngineError
from skillpress.models.engines.server.connection import RejectedRequestError, Server, ServerFailedError
from skillpress.models.engines.server.protocol import GENERATE, BadAnswerError, read_answer, request_body

ATTEMPTS = 3
"""Minimum number of attempts per request, even on a single server: a broken connection may be an accident."""
START_AGAIN = "start it again (skillpress serve-model) and run again: what is finished is kept"

_log = logging.getLogger(__name__)


class ServerPool:
    """Servers that sample from the same weights."""

    def __init__(
        self, servers: Sequence[Server], stop: Sequence[int], run: str, seconds: float, *, seeded: bool
    ) -> None:
        """Nothing is sent yet.

        Args:
            stop: token ids that end a response.
            run: a word that distinguishes the requests and weights of this run from those of others.
            seconds: maximum time for one response or one update.
            seeded: whether requests have their seeds.
        """
        self.servers, self._seeded = list(servers), seeded
        self._stop, self._run, self._seconds = list(stop), run, seconds
        self._sent = 0

    def name_of(self, version: int) -> str:
        """The name on the servers of this run's weights of this version."""
        return f"{self._run}-{version}"

    async def answer(self, request: Request, versions: Callable[[], Mapping[str, int]]) -> Completion:
        """Return the completion, from any of the servers.

        Args:
            versions: called when the answer has arrived; maps names of weights that may have sampled it to
                their versions.

        Raises:
            EngineError: no server succeeded; the message names each with its reason.
        """
        failures: list[str] = []
        tried: set[str] = set()
        for _ in range(max(ATTEMPTS, len(self.servers))):
            server = self._least_busy(tried)
            if server is None:
                break
            tried.add(server.url)
            try:
                return await self._ask(server, request, versions)
            except RejectedRequestError as error:
                raise EngineError(f"request {request.key}: {server.url} refuses it: {error}") from error
            except BadAnswerError as error:
                failures.append(f"{server.url}: {error}")
                self._lose(server, str(error))
            except ServerFailedError as error:
                failures.append(f"{server.url}: {error}")
                if server.lost is None and not await server.well():
                    self._lose(server, str(error))
        reasons = failures or [f"{server.url}: {server.lost}" for server in self.servers]
        raise EngineError(
            f"request {request.key} (prompt of {len(request.prompt)} tokens): no server answered it: "
            f"{'; '.join(reasons)}; {START_AGAIN}"
        )

    async def update(self, deliver: Callable[[Server], Awaitable[None]], version: int) -> None:
        """Give all servers the same new weights. Servers that were lost and respond again are used again.

        Args:
            deliver: gives one server the weights, under the name of this version.

        Raises:
            EngineError: no server has accepted them.
        """
        await asyncio.gather(*(self._update(server, deliver, version) for server in self.servers))
        if all(server.lost for server in self.servers):
            reasons = "; ".join(f"{server.url}: {server.lost}" for server in self.servers)
            raise EngineError(f"weights {version}: no server accepted them: {reasons}; {START_AGAIN}")

    async def _ask(
        self, server: Server, request: Request, versions: Callable[[], Mapping[str, int]]
    ) -> Completion:
        self._sent += 1
        name = f"{self._run}-{request.key}-{self._sent}"
        body = request_body(request, self._stop, name, seeded=self._seeded)
        with server.working():
            answer = await server.post(GENERATE, body, self._seconds)
        return read_answer(answer, request, versions())

    async def _update(
        self, server: Server, deliver: Callable[[Server], Awaitable[None]], version: int
    ) -> None:
        try:
            await deliver(server)
        except (ServerFailedError, RejectedRequestError, OSError) as error:
            self._lose(server, str(error))
            return
        if server.lost is not None:
            _log.warning("%s works again, with weights %s", server.url, self.name_of(version))
            server.lost = None

    def _least_busy(self, tried: set[str]) -> Server | None:
        """The next server to ask, preferably one that has not failed at this request."""
        well = [server for server in self.servers if server.lost is None]
        return min(well, key=lambda server: (server.url in tried, server.in_flight), default=None)

    def _lose(self, server: Server, reason: str) -> None:
        if server.lost is None:
            _log.warning("%s is left out until the next update of the weights: %s", server.url, reason)
        server.lost = reason
