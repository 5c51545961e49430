"""The secret that this repository's Prefect servers require.

A client that may register deployments with such a server can run commands as the user who started its worker.
Other users of the machine can reach loopback just as the user's own programs do, so every server requires a
secret. Prefect takes it from ``PREFECT_SERVER_API_AUTH_STRING``, its clients from
``PREFECT_API_AUTH_STRING``.

Prefect reads both when it is imported, so :func:`apply` runs when ``flows`` is imported.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

OF_SERVER, OF_CLIENT = "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING"
ELSEWHERE = ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_PROFILE", OF_CLIENT)
"""If one of these variables is set, flows use a server that was started elsewhere."""

made_here = False
"""Whether this process generated the secret; otherwise it was given."""
_for_own_client = ""
"""The secret that this process has given to its own client, which names no server elsewhere."""
_own_url = ""
"""The address of the server that this process has started."""


def apply() -> None:
    """Make this process's servers require a secret, and its clients send it."""
    global made_here, _for_own_client
    made_here = OF_SERVER not in os.environ
    if made_here:
        os.environ[OF_SERVER] = secrets.token_urlsafe(24)
    if not is_elsewhere():
        _for_own_client = os.environ[OF_CLIENT] = os.environ[OF_SERVER]


def use_own_server(url: str) -> None:
    """Make this process's client use a server that the process has started. Call it before Prefect is
    imported."""
    global _own_url
    _own_url = os.environ["PREFECT_API_URL"] = url


def is_elsewhere() -> bool:
    """Whether the environment or one of Prefect's profiles names another process's server."""
    profiles = Path(os.environ["PREFECT_HOME"]) / "profiles.toml"
    named = profiles.read_text(encoding="utf-8") if profiles.is_file() else ""
    given = {name: os.environ[name] for name in ELSEWHERE if name in os.environ}
    if given.get(OF_CLIENT) == _for_own_client:
        given.pop(OF_CLIENT, None)
    if given.get("PREFECT_API_URL") == _own_url:
        given.pop("PREFECT_API_URL", None)
    return bool(given) or "PREFECT_API_URL" in named
