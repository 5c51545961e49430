"""Inside a task's root: carry out what the host asks for on a socket, the standard input.

    python inside.py

A request is a line of JSON, for ``unpack`` followed by bytes; its answer is a line of JSON. While a command
runs, any line ends it. It imports only the standard library, since nothing else may be installed there.
"""

import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
from typing import IO, Any

MOST_READ = 1 << 20
"""Maximum number of bytes read from the end of a file."""


def unpack(lines: io.RawIOBase, asked: dict[str, Any]) -> dict[str, Any]:
    """Unpack a tar archive at ``/``."""
    content = bytearray()
    while len(content) < asked["bytes"] and (more := lines.read(asked["bytes"] - len(content))):
        content += more
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extraction_filter = lambda member, path: member  # the host made it
        archive.extractall("/")
    return {}


def remove(lines: io.RawIOBase, asked: dict[str, Any]) -> dict[str, Any]:
    """Remove files and folders that exist."""
    for path in asked["paths"]:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)
    return {}


def read(lines: io.RawIOBase, asked: dict[str, Any]) -> dict[str, Any]:
    """The text of a file; null if there is none."""
    try:
        with open(asked["path"], "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_READ))
            return {"text": file.read(MOST_READ).decode(errors="replace")}
    except OSError:
        return {"text": None}


def run(lines: io.RawIOBase, asked: dict[str, Any]) -> dict[str, Any]:
    """Run a command to its end, or until the host sends a line; then its code is null."""
    os.makedirs(asked["folder"], exist_ok=True)
    with open(asked["output"] or os.devnull, "wb") as output:
        return {"code": _code(asked, output if asked["output"] else None)}


def _code(asked: dict[str, Any], output: IO[bytes] | None) -> int | None:
    """The command's exit code; None if it was ended."""
    try:
        process = subprocess.Popen(
            asked["command"],
            cwd=asked["folder"],
            env=os.environ | asked["more"] if asked["variables"] is None else asked["variables"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            start_new_session=True,
        )
    except OSError as error:
        print(f"{asked['command'][0]} cannot be started: {error}", file=sys.stderr, flush=True)
        return 127
    ends = os.pidfd_open(process.pid)
    ended, _, _ = select.select([ends, 0], [], [])
    os.close(ends)
    code = process.wait() if ends in ended else None
    if code is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code


def main() -> None:
    """Answer requests until the host has gone."""
    host = socket.socket(fileno=0)
    lines = host.makefile("rb", buffering=0)  # a line in a buffer would not wake ``select``
    doing = {"unpack": unpack, "remove": remove, "read": read, "run": run}
    for line in lines:
        asked = json.loads(line)
        if asked["do"] in doing:
            host.sendall(json.dumps(doing[asked["do"]](lines, asked)).encode() + b"\n")


if __name__ == "__main__":
    main()
