"""Walls around a command: no network but the endpoint, by one socket; its own folder; its own processes.

Inside, the file system is read-only and has what a Python program needs: ``/usr``, the interpreter with its
packages, and the lab's folder. Home folders, ``/etc``'s secrets and all else are not there. A forwarder
inside listens on a port of the sandbox's own loopback and passes every connection to the endpoint's Unix
socket, so an unmodified client works by its base URL.

Memory, processes and files are limited by the watchdog of the sandboxes, which looks every 0.1 seconds. The
address space is not limited: programs on V8 or Go reserve far more than they use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpress.play.programs.launch import Start
from skillpress.play.sandbox.bubblewrap import SHARED_MEMORY_BYTES, find_bwrap, probe
from skillpress.play.sandbox.limits import Limits

PORT = 8000
"""The forwarder's port inside."""
PROCESSES, DISK_MB, INODES = 512, 1024, 200_000
"""The most processes and threads of a walled program, megabytes and number of its files."""
SOCKET = "/run/endpoint.sock"
FORWARDER = "/run/forwarder.py"
_SYSTEM = (
    "/usr",
    "/bin",
    "/lib",
    "/lib64",
    "/sbin",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/passwd",
    "/etc/localtime",
)


@dataclass(frozen=True)
class Walled:
    """Walls by bubblewrap, as ``launch.Around``."""

    socket: Path
    """The endpoint's Unix socket."""
    lab: Path
    """The folder that holds the program's files, shown read-only."""
    limits: Limits
    """The limits of memory, processes and files."""

    @staticmethod
    def limited(memory_mb: int) -> Limits:
        """The limits of a program with this much memory."""
        return Limits(memory_mb=memory_mb, processes=PROCESSES, disk_mb=DISK_MB, inodes=INODES)

    @staticmethod
    def check() -> None:
        """Try whether walls can be built here.

        Raises:
            SandboxUnavailableError: they cannot; the message names the cause and the remedy.
        """
        probe()

    def __call__(self, start: Start, command: Sequence[str]) -> list[str]:
        """The command in its walls."""
        shown = dict.fromkeys([str(self.lab), sys.base_prefix, os.path.realpath(sys.prefix)])
        if not Path(sys.prefix).is_relative_to(self.lab):
            shown[sys.prefix] = None
        arguments = [
            str(find_bwrap()),
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
        ]
        for path in _SYSTEM:
            arguments += ["--ro-bind-try", path, path]
        arguments += ["--proc", "/proc", "--dev", "/dev", "--size", str(SHARED_MEMORY_BYTES)]
        arguments += ["--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--dir", "/run"]
        arguments += ["--size", str(self.limits.disk_mb << 20), "--tmpfs", "/tmp"]
        for path in shown:
            arguments += ["--ro-bind", path, path]
        arguments += ["--bind", str(start.folder), str(start.folder), "--chdir", str(start.folder)]
        arguments += ["--bind", str(self.socket), SOCKET, "--ro-bind", str(_forwarder()), FORWARDER]
        for name in filter(is_outside, os.environ):
            arguments += ["--unsetenv", name]
        arguments += ["--setenv", "HOME", str(start.folder), "--remount-ro", "/"]
        return [*arguments, "--", sys.executable, "-I", FORWARDER, str(PORT), SOCKET, *command]

    @staticmethod
    def url(key: str) -> str:
        """The endpoint's address as a walled program sees it."""
        return f"http://127.0.0.1:{PORT}/e/{key}"


def is_outside(variable: str) -> bool:
    """Whether an environment variable names a proxy or a file that does not exist behind the walls. HTTP
    clients fail on such variables before they ask anything."""
    files = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
    return variable in files or variable.lower().endswith("_proxy")


def _forwarder() -> Path:
    return Path(__file__).with_name("forwarder.py")
