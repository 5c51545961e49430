"""Kernel quotas that all sandboxes of one user share, and how many sandboxes they leave room for."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

NAMESPACES = {"user": 2, "mnt": 1, "pid": 1, "net": 1, "ipc": 1, "uts": 1, "cgroup": 1}
"""Maps each kind of namespace to the number of them that a bubblewrap sandbox takes."""
SETTINGS = Path("/proc/sys/user")
PROCESSES = 3
"""Number of processes of a sandbox in which no code runs."""


def room(settings: Path = SETTINGS) -> tuple[int, str]:
    """How many sandboxes one user may have at once, and the name of the quota that sets this limit.

    Args:
        settings: the folder in which the kernel shows its quotas of namespaces.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    most = sys.maxsize if allowed == resource.RLIM_INFINITY else allowed
    found = {"ulimit -u": most // PROCESSES}
    for kind, taken in NAMESPACES.items():
        name = f"max_{kind}_namespaces"
        try:
            found[f"user.{name}"] = int((settings / name).read_text()) // taken
        except (OSError, ValueError):
            continue  # a kernel without this file has no such quota
    least = min(found, key=lambda name: found[name])
    return found[least], least
