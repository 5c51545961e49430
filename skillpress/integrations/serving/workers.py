"""The slots that a machine offers to trainers elsewhere: one WebSocket each, at ``/slot``.

The other side is ``skillpress/rollouts/remote``, where the messages are defined. A client needs the key,
which is compared before any message is read. A server without free slots says so at once. Its environments
run as they would on the trainer's machine: code in sandboxes, engines in worker processes. When a client is
gone, or silent for too long, its slot is free again as soon as the environment has answered.
"""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from skillpress.core.trajectory import Task
from skillpress.core.web import PageGuard
from skillpress.integrations.serving.host import EnvironmentHost
from skillpress.integrations.serving.server import GOING_AWAY, TRY_AGAIN_LATER
from skillpress.rollouts.collection import BrokenEnvironmentError, StepResult
from skillpress.rollouts.remote.slot import PATH, UNAUTHORIZED, EnvironmentFailed, Full, Offer
from skillpress.rollouts.remote.values import ForeignMessageError, read, written

TASKS = ("skillpress.core.trajectory",)
"""The module whose dataclasses a client may send."""
PROTOCOL_VIOLATED = 1002


@dataclass
class _Slots:
    """The endpoint."""

    offer: Offer
    host: EnvironmentHost
    key: str = field(repr=False)
    idle_seconds: float

    def __post_init__(self) -> None:
        self._free = list(range(self.offer.slots))
        """Free slots as a heap: low numbers are reused first, and their environments with them."""
        heapify(self._free)

    async def play(self, connection: WebSocket) -> None:
        """Serve one connection."""
        if not hmac.compare_digest(_shown(connection), f"Bearer {self.key}".encode()):
            await connection.send_denial_response(PlainTextResponse("wrong key", UNAUTHORIZED))
            return
        await connection.accept()
        if not self._free:
            await connection.send_text(written(Full(self.offer)))
            await connection.close(TRY_AGAIN_LATER)
            return
        slot = heappop(self._free)
        asked: list[asyncio.Future[StepResult]] = []
        try:
            await connection.send_text(written(self.offer))
            await self._converse(connection, slot, asked)
        except (WebSocketDisconnect, asyncio.CancelledError):
            return  # the client is gone, or the server ends
        finally:
            await asyncio.shield(asyncio.ensure_future(self._leave(slot, asked)))

    async def _converse(
        self, connection: WebSocket, slot: int, asked: list[asyncio.Future[StepResult]]
    ) -> None:
        """Answer questions until the client goes; ``asked`` holds the last one."""
        while True:
            try:
                text = await asyncio.wait_for(connection.receive_text(), self.idle_seconds)
                what = read(text, TASKS)
                if not isinstance(what, Task | str):
                    raise ForeignMessageError("a question is a task or an action")
            except TimeoutError:
                await connection.close(GOING_AWAY, f"nothing was asked for {self.idle_seconds:g} seconds")
                return
            except (ForeignMessageError, KeyError):  # KeyError: a message of bytes
                await connection.close(PROTOCOL_VIOLATED, "not a question of skillpress")
                return
            asked[:] = [asyncio.wrap_future(self.host.ask(slot, what))]
            await connection.send_text(await _answer(asked[0]))

    async def _leave(self, slot: int, asked: list[asyncio.Future[StepResult]]) -> None:
        """Free a slot once its environment has answered, because a running step cannot be ended."""
        for answer in asked:
            with suppress(BrokenEnvironmentError):
                await answer
        self.host.forget(slot)
        heappush(self._free, slot)


async def _answer(asked: asyncio.Future[StepResult]) -> str:
    """The message with an environment's answer, or with the reason why there is none."""
    try:
        return written(await asyncio.shield(asked))
    except (BrokenEnvironmentError, TypeError) as error:
        return written(EnvironmentFailed(str(error)))


def _shown(connection: WebSocket) -> bytes:
    """The key that the client sends."""
    return connection.headers.get("authorization", "").encode("latin-1")


def slots_app(offer: Offer, host: EnvironmentHost, key: str, idle_seconds: float) -> Starlette:
    """The endpoint as an ASGI application, for programs only."""
    slots = _Slots(offer=offer, host=host, key=key, idle_seconds=idle_seconds)
    return Starlette(routes=[WebSocketRoute(PATH, slots.play)], middleware=[Middleware(PageGuard)])
