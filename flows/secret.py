"""The secret that Prefect's servers of this repository ask for.

Whoever may register deployments with such a server runs commands as the user who started its worker: other
users of the machine reach loopback as well as the user's own programs do. So every server asks for a secret.
Prefect takes it from ``PREFECT_SERVER_API_AUTH_STRING``, its clients from ``PREFECT_API_AUTH_STRING``.

Prefect reads both when it is imported; hence :func:`apply` runs when ``flows`` is imported.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

OF_SERVER, OF_CLIENT = "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING"
ELSEWHERE = ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_PROFILE", OF_CLIENT)
"""Where one of these is set, flows talk to a server that somebody else has started."""

made_here = False
"""Whether this process made the secret up; it was given otherwise."""


def apply() -> None:
    """Let this process's servers ask for a secret, and its clients know it."""
    global made_here
    made_here = OF_SERVER not in os.environ
    if made_here:
        os.environ[OF_SERVER] = secrets.token_urlsafe(24)
    if not _is_elsewhere():
        os.environ[OF_CLIENT] = os.environ[OF_SERVER]


def _is_elsewhere() -> bool:
    """Whether flows use another process's server: the environment or one of Prefect's profiles names it."""
    profiles = Path(os.environ["PREFECT_HOME"]) / "profiles.toml"
    named = profiles.read_text(encoding="utf-8") if profiles.is_file() else ""
    return any(name in os.environ for name in ELSEWHERE) or "PREFECT_API_URL" in named
