"""An engine that asks vLLM servers over HTTP: tokens in, tokens out, and weights over the same connection.

``submit`` starts one connection per request and returns; answers are collected in a queue as they arrive.
Every process of a training is a client of all servers. The first process gives the servers new weights while
the others wait. Each response says which weights sampled each of its tokens. Weights of another run are
refused, so two runs that share a server by mistake are detected.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import torch

from skillpress.core.engine import Completion, Promises, Request, StateDict
from skillpress.core.errors import UserError
from skillpress.core.http_clients import async_client, direct_to
from skillpress.models.engines.checks import EngineError, check_requests, check_weights, shapes_of
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.server.connection import CONNECT_SECONDS, Server, refuse_unfit
from skillpress.models.engines.server.delivery import Delivery
from skillpress.models.engines.server.pool import ServerPool
from skillpress.models.engines.server.weights import OfferedWeights, local_address, offered
from skillpress.models.policy.policy import Policy


@dataclass(frozen=True)
class _Answer:
    """The result of a request."""

    round: int
    """Number of calls of ``abort`` before the request was sent."""
    key: int
    outcome: Completion | Exception


Result = TypeVar("Result")

END_SECONDS = 10.0
"""Maximum time for cancelled work to end."""


class LoopThread:
    """Runs coroutines in a daemon thread, which never keeps a process from ending."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start the work; the future returns its result and can cancel it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Wait for the coroutine's result, without a deadline of its own. Ctrl-C cancels the coroutine."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel all running work and end the thread."""
        if self._loop.is_closed():
            return
        self.start(_cancel_all()).result(END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)
        self._loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class ServerEngine:
    """An ``engine.Engine`` on servers."""

    prefilled_tokens: int | None = None
    """None: servers do not report how much of a prompt they computed."""

    def __init__(
        self,
        policy: Policy,
        demand: EngineDemand,
        urls: Sequence[str],
        answer_seconds: float,
        *,
        transfer: str = "auto",
        seeded: bool = False,
    ) -> None:
        """Connect to the servers and give them the weights; each answer may take ``answer_seconds``.

        Args:
            transfer: how weights travel (``engine.transfer``).
            seeded: whether each response has a seed of its own (``engine.seeded``).

        Raises:
            UserError: a server cannot be reached, is too short for the prompts, or serves another model.
        """
        exact = policy.model.dtype == torch.float32
        self.promises = Promises(exact_seeds=False, exact_logprobs=exact, lockstep=False, continues=True)
        self.version = 0
        self._demand, self._ranks = demand, demand.ranks
        self._vocabulary = policy.vocabulary
        self._shapes = shapes_of(policy.model.state_dict())
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self._open: dict[int, Future[None]] = {}
        self._round = 0
        self._loop = LoopThread("asks servers")
        run: str = self._ranks.gather([secrets.token_hex(4)])[0]
        self._client = async_client(direct_to(urls), {})
        servers = [Server(url, self._client) for url in urls]
        self._pool = ServerPool(servers, sorted(policy.stop_token_ids), run, answer_seconds, seeded=seeded)
        self._deliver = Delivery(transfer, answer_seconds)
        self._names = {self._pool.name_of(0): 0}
        try:
            self._loop.call(self._look_at_all(policy.model.dtype))
            with suppress(EngineError):  # the next line reports it better
                self._give(dict(policy.model.state_dict()), 0)
            self._refuse_lost_servers()
        except BaseException:
            self.close()
            raise

    def submit(self, requests: Sequence[Request]) -> None:
        """See ``engine.Engine``. ``ValueError`` for a prompt that is empty, too long, or has unknown ids."""
        check_requests(requests, self._vocabulary, self._demand.longest)
        for request in requests:
            self._open[request.key] = self._loop.start(self._answer(request, self._round, self.version))

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """See ``engine.Engine``. After an ``EngineError``, all other requests are aborted too."""
        found: list[tuple[int, Completion]] = []
        while self._open:
            try:
                answer = self._answers.get(timeout=0 if found else wait)
            except Empty:
                break
            if answer.round != self._round:
                continue
            if isinstance(answer.outcome, Exception):
                self.abort()
                raise answer.outcome
            del self._open[answer.key]
            found.append((answer.key, answer.outcome))
        return found

    def abort(self) -> None:
        """See ``engine.Engine``. Servers stop when their connections are closed."""
        self._round += 1
        for future in self._open.values():
            future.cancel()
        self._open.clear()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``engine.Engine``. ``EngineError`` if no server takes them, ``ValueError`` for others."""
        self._give(check_weights(weights, self._shapes), version)

    def sleep(self) -> None:
        """Do nothing: the learner does not use the servers' memory."""

    def wake(self) -> None:
        """Do nothing: ``sleep`` released nothing."""

    def close(self) -> None:
        """See ``engine.Engine``. The servers keep running."""
        self.abort()
        self._deliver.close()
        self._loop.call(self._client.aclose())
        self._loop.close()

    async def _answer(self, request: Request, round_: int, version: int) -> None:
        """Put the result of the request into the queue."""

        def versions() -> dict[str, int]:
            return {name: number for name, number in self._names.items() if number >= version}

        outcome: Completion | Exception
        try:
            outcome = await self._pool.answer(request, versions)
        except Exception as error:  # noqa: BLE001  raised again by ``completed``, in the caller's thread
            outcome = error
        self._answers.put(_Answer(round_, request.key, outcome))

    def _give(self, weights: dict[str, Any], version: int) -> None:
        """The first process gives the servers the weights; all continue when the servers have them."""
        # A new dictionary each time: the other thread may be reading the old one. Older names stay, since
        # requests may be open or be sent at this moment.
        self._names = {**self._names, self._pool.name_of(version): version}
        self._ranks.barrier()  # from here on an answer may name the new weights, to every process
        if self._ranks.rank == 0:
            self._loop.call(self._update(OfferedWeights(weights), version))
        self._ranks.barrier()
        self.version = version

    async def _update(self, offer: OfferedWeights, version: int) -> None:
        with ExitStack() as stack:
            at: dict[str, str] = {}

            async def deliver(server: Server) -> None:
                address = await asyncio.to_thread(local_address, server.url, CONNECT_SECONDS)
                if address not in at:
                    at[address] = stack.enter_context(offered(offer, address))
                await self._deliver(server, offer, at[address], address, self._pool.name_of(version))

            await self._pool.update(deliver, version)

    def _refuse_lost_servers(self) -> None:
        """Refuse to start unless every named server has accepted the weights."""
        lost = [f"{server.url}: {server.lost}" for server in self._pool.servers if server.lost]
        if lost:
            raise UserError(
                f"engine.urls: {'; '.join(lost)}. Start each with a model of the policy's shape (its log "
                "says what was wrong): skillpress serve-model --model FOLDER"
            )

    async def _look_at_all(self, dtype: torch.dtype) -> None:
        for server in self._pool.servers:
            await refuse_unfit(server, self._demand.longest, dtype)
