"""Our own HTTP servers, and a guard that protects any server on this machine from web pages.

A server on loopback is not private: every page in the user's browser can send requests to it. ``guard.py``
tells such requests from those of programs and of the server's own pages. ``server.py`` runs an application
on uvicorn with deadlines, so that clients that neither send nor read cannot use up its connections.
"""

from __future__ import annotations

from skillpress.core.web.guard import PageGuard, is_loopback
from skillpress.core.web.server import Patience, server_of

__all__ = ["PageGuard", "Patience", "is_loopback", "server_of"]
