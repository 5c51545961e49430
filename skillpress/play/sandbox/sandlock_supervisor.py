"""The process outside that maintains sandlock's walls around one interpreter; it runs no code of the agent.

Orphans from inside become its children. It kills them all when the interpreter ends, when the host ends, or
when it is asked to.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def descendants() -> list[int]:
    """All running descendants of this process."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as status:
                    state, parent = status.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if state != b"Z":
                parents[int(name)] = int(parent)
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


def leave(code: int) -> None:
    """End this process and all its descendants."""
    while left := descendants():
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    os._exit(code)


def supervise(process: Any) -> None:
    """End with the interpreter's exit code."""
    result = process.wait()
    killed_by = result.signal if result.signal > 0 else signal.SIGKILL
    leave(result.exit_code if result.exit_code >= 0 else 128 + killed_by)


def main() -> None:
    """Build the walls, start the interpreter, and wait for a reason to end."""
    told = json.loads(sys.argv[1])
    sys.path.append(told["packages"])
    from sandlock import Sandbox

    signal.signal(signal.SIGTERM, lambda number, frame: leave(1))
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != told["host"]:
        os._exit(1)
    os.dup2(told["socket"], 0)  # all others but stdout and stderr are closed
    os.close(told["socket"])
    process = Sandbox(**told["policy"]).popen(told["command"])
    threading.Thread(target=supervise, args=(process,), daemon=True).start()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
