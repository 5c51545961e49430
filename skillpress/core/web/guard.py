"""Refuses requests from foreign web pages before the application sees them.

A page that is open in the user's browser can send requests to this machine's ports. Two headers, which no
page can forge, reveal it:

- ``Origin`` names the page's own site. Browsers send it with every POST and every WebSocket.
- ``Host`` names the server as the page calls it. A page can make its own domain resolve to 127.0.0.1 (DNS
  rebinding). It then has the same origin as the server, but the domain is still in ``Host``.

``Host`` is checked for connections that arrive on loopback. The guard cannot know by which names other
machines call this one, so a server that listens for them needs a secret, or must be harmless.
"""

from __future__ import annotations

import json
import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

_PORT = re.compile(r":[0-9]+$")
POLICY_VIOLATED = 1008
"""The code with which a WebSocket is closed."""
WRONG_HOST = "this server answers under the address that it printed, and no other"
FOREIGN_PAGE = "this server answers pages of its own, and no others"
NO_PAGES = "this server answers programs, and no web pages"


class PageGuard:
    """ASGI middleware for HTTP and WebSockets."""

    def __init__(self, app: ASGIApp, pages: Literal["none", "own"] = "none", port: int | None = None) -> None:
        """
        Args:
            pages: "own" accepts requests from the pages that this server itself sends to a browser; "none"
                accepts requests from programs only.
            port: the port that ``Host`` must name. None accepts any: a tunnel may start at another port.
        """
        self._app, self._pages, self._port = app, pages, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        reason = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if reason is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":  # closed before it is accepted, so the client gets a 403
            await send({"type": "websocket.close", "code": POLICY_VIOLATED, "reason": reason})
        else:
            body = json.dumps({"error": reason}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is refused; None if it is accepted."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        address = address_of(scope["server"][0])
        if address and address.is_loopback and not self._are_ours(hosts, address):
            return WRONG_HOST
        if not origins:
            return None
        if self._pages == "none":
            return NO_PAGES
        return None if origins == [f"http://{host}" for host in hosts] else FOREIGN_PAGE

    def _are_ours(self, hosts: list[str], address: IPv4Address | IPv6Address) -> bool:
        """Whether there is exactly one ``Host`` and it names this machine."""
        literal = f"[{address}]" if address.version == 6 else str(address)
        names = (literal, "0.0.0.0", "localhost", socket.gethostname().lower())
        if self._port is None:
            return len(hosts) == 1 and _PORT.sub("", hosts[0].lower()) in names
        ours = {f"{name}:{self._port}" for name in names} | (set(names) if self._port == 80 else set())
        return len(hosts) == 1 and hosts[0].lower() in ours


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host can be reached only from this machine."""
    address = address_of(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that the host's text gives; None for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
