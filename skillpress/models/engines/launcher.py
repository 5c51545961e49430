"""How the processes of a vLLM server know the process that started it, and end with it.

Both sides import this module: the process that starts a server, and vLLM's worker processes, in which
skillpress need not be installed. So it imports only the standard library.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import threading

LAUNCHER = "SKILLPRESS_LAUNCHER"
"""Environment variable with the pid of the process that started the server."""
SCRATCH = "SKILLPRESS_SCRATCH"
"""Environment variable with the folder, made by the launcher, of the server's sockets and temporary files."""


def end_with_launcher() -> None:
    """End this process when the launcher has ended, even by ``kill -9``, and remove the scratch folder, which
    only the launcher would remove otherwise.

    Without this, vLLM's workers outlive a server that was killed, and its sockets outlive them. Nothing
    happens if no launcher started the server, or if the system cannot report the end of a process.
    """
    launcher = os.environ.get(LAUNCHER)
    if launcher is None or not hasattr(os, "pidfd_open"):
        return
    ended = select.poll()
    try:
        ended.register(os.pidfd_open(int(launcher)), select.POLLIN)
    except ProcessLookupError:
        _end()

    def watch() -> None:
        ended.poll()
        _end()

    threading.Thread(target=watch, name="ends with the launcher", daemon=True).start()


def _end() -> None:
    if SCRATCH in os.environ:
        shutil.rmtree(os.environ[SCRATCH], ignore_errors=True)  # another worker removes it too
    os.kill(os.getpid(), signal.SIGKILL)
