"""Environments for agents of other libraries: a server that speaks OpenEnv's protocol, or MCP.

``messages.py`` is OpenEnv's protocol as text, ``session.py`` the episodes of one connection, ``host.py`` the
environments behind all connections, and ``server.py`` the WebSocket and the HTTP endpoints. ``episodes.py``
names the episodes of callers without a connection, and ``mcp_server.py`` makes tools of them.
"""

from __future__ import annotations

from skillpress.integrations.serving.episodes import Episodes
from skillpress.integrations.serving.host import EnvironmentHost, host_of
from skillpress.integrations.serving.server import Metadata, ServingLimits, listen, make_app, server_of
from skillpress.integrations.serving.session import SessionSettings, TaskBook

__all__ = [
    "EnvironmentHost",
    "Episodes",
    "Metadata",
    "ServingLimits",
    "SessionSettings",
    "TaskBook",
    "host_of",
    "listen",
    "make_app",
    "server_of",
]
