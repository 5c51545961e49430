"""What a vLLM server's processes know of the process that started it, and how they follow it.

Both ends import this: whoever starts a server, and vLLM's worker processes, where skillpress need not be
installed. So it imports the standard library only.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import threading

LAUNCHER = "SKILLPRESS_LAUNCHER"
"""The environment variable that holds the number of the process that started the server."""
SCRATCH = "SKILLPRESS_SCRATCH"
"""The environment variable that names the folder of the server's sockets and other temporary files, which the
launcher made for it."""


def end_with_launcher() -> None:
    """End this process when the launcher has ended, ``kill -9`` included, and remove what only it would have:
    vLLM's workers outlive a server that was killed, and its sockets outlive them.

    Nothing happens where no launcher started the server, or the system cannot tell of a process's end.
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
