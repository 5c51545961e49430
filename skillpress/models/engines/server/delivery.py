"""How new weights reach a server: by collectives where that is wanted and works, or over HTTP in parts.

Collectives (``link.py``) need a group of the learner and the server's workers. If no group can be made, or if
it fails while the server is well, this server gets its weights over HTTP for the rest of the run. A server
that was lost and comes back gets a new group.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import torch

from skillpress.models.engines.link import Link, LinkError, Meeting
from skillpress.models.engines.server.connection import RejectedRequestError, Server, ServerFailedError
from skillpress.models.engines.server.weights import OfferedWeights

JOIN_SECONDS = 60.0
"""Maximum time until the learner and a server's workers have met."""

_log = logging.getLogger(__name__)


def by_collectives(transfer: str, device: torch.device) -> bool:
    """Whether this ``engine.transfer`` tries collectives first for weights on this device."""
    return transfer == "collective" or (transfer == "auto" and device.type == "cuda")


class Delivery:
    """Gives weights to servers; used in one event loop."""

    def __init__(self, transfer: str, seconds: float) -> None:
        """Nothing is sent yet.

        Args:
            transfer: ``collective`` tries collectives first, ``auto`` does so for weights on a GPU.
            seconds: maximum time for one server's update.
        """
        self._transfer, self._seconds = transfer, seconds
        self._links: dict[str, Link] = {}
        self._over_http: set[str] = set()
        """Servers for which collectives have failed."""

    async def __call__(
        self, server: Server, offer: OfferedWeights, url: str, address: str, name: str
    ) -> None:
        """Make the server sample from the offer from now on.

        Args:
            url: where the offer can be fetched.
            address: this machine's address for the server.
            name: name of the weights on the server.

        Raises:
            ServerFailedError: the update failed, or took longer than allowed.
            RefusedError: the server reports that the weights do not fit.
        """
        failure: Exception | None = None
        if by_collectives(self._transfer, offer.device) and server.url not in self._over_http:
            try:
                await self._by_link(server, offer, url, address, name)
                return
            except (LinkError, ServerFailedError, RejectedRequestError) as error:
                failure = error
                await self._end_link(server)
        update = {"url": url, "seconds": self._seconds}
        await server.update(name, self._seconds, lambda: server.take(update, self._seconds))
        if failure is not None:
            self._over_http.add(server.url)
            _log.warning("%s gets weights over HTTP from now on: %s", server.url, failure)

    def close(self) -> None:
        """End all groups."""
        for link in self._links.values():
            link.end()
        self._links.clear()

    async def _end_link(self, server: Server) -> None:
        link = self._links.pop(server.url, None)
        if link is not None:
            await asyncio.to_thread(link.end)  # a group may wait for its last broadcast

    async def _by_link(
        self, server: Server, offer: OfferedWeights, url: str, address: str, name: str
    ) -> None:
        if server.lost is not None:  # it may have been started again, without its end of the group
            await self._end_link(server)
        if server.url not in self._links:
            self._links[server.url] = await self._meet(server, offer, address)
        link, update = self._links[server.url], {"url": url, "seconds": self._seconds, "collective": True}

        async def transfer() -> None:
            sending = asyncio.create_task(asyncio.to_thread(link.send, offer.manifest, offer.fill))
            try:
                await server.take(update, self._seconds)
            except BaseException:
                await asyncio.to_thread(link.end)  # or it would wait for a server that takes nothing
                with suppress(LinkError):
                    await sending
                raise
            await sending

        await server.update(name, self._seconds, transfer)

    async def _meet(self, server: Server, offer: OfferedWeights, address: str) -> Link:
        """The learner's end of a new group with the server's workers."""
        size = 1 + int((await server.get("/get_world_size", JOIN_SECONDS))["world_size"])
        meeting = Meeting(address, JOIN_SECONDS)
        info = {
            "host": meeting.host,
            "port": meeting.port,
            "size": size,
            "device": offer.device.type,
            "seconds": JOIN_SECONDS,
        }
        joining = asyncio.create_task(asyncio.to_thread(meeting.join, size, offer.device))
        try:
            await server.post("/init_weight_transfer_engine", {"init_info": info}, JOIN_SECONDS)
        except BaseException:
            meeting.give_up()
            with suppress(LinkError):
                (await joining).end()
            raise
        link = await joining
        link.patience = self._seconds
        return link
