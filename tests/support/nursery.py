"""Test programs that train, started from a process that has imported torch, transformers and DeepSpeed.

The imports take ten seconds of processor time and a small training takes two, so a test that starts three
programs would spend its time on imports. So one process per pytest worker imports once and forks each program
(``programs/nursery_program.py``), which has its own memory and ends by itself.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.support.programs import PROGRAMS, importing

SECONDS = 300.0
"""The most seconds of a program, and of the imports for the first one."""


class Nursery:
    """Runs one program at a time: each ``start`` is followed by a ``wait``."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        command = [sys.executable, "-P", str(PROGRAMS / "nursery_program.py"), str(number)]
        self._server = subprocess.Popen(command, pass_fds=[number], stdin=subprocess.DEVNULL, env=importing())
        theirs.close()
        ours.settimeout(SECONDS)
        self._socket, self._answers = ours, ours.makefile()

    def start(self, command: list[str], output: int, errors: int) -> int:
        """Start a program that writes to these open files; returns its process number."""
        socket.send_fds(self._socket, [json.dumps(command).encode()], [output, errors])
        return int(self._answers.readline())

    def wait(self) -> int:
        """Wait for the program; returns its return code, as ``subprocess`` defines it."""
        return int(self._answers.readline())

    def end(self) -> None:
        """End the nursery while it runs no program."""
        self._answers.close()
        self._socket.close()
        self._server.wait(60)


@cache
def nursery() -> Nursery:
    """The nursery of this process, made at the first call."""
    made = Nursery()
    atexit.register(made.end)
    return made


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; output and errors are text."""
    command = [str(program), *arguments]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = nursery().start(command, output.fileno(), errors.fileno())
        code = ended(process)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, code, output.read(), errors.read())


@contextmanager
def killed(program: Path, *arguments: str) -> Iterator[Iterator[str]]:
    """The lines that a program writes; at the end of the block it is killed with ``kill -9``."""
    reads, writes = os.pipe()
    with open(reads) as lines, open(os.devnull, "w") as nowhere:
        process = nursery().start([str(program), *arguments], writes, nowhere.fileno())
        os.close(writes)
        try:
            yield lines
        finally:
            os.kill(process, signal.SIGKILL)
            ended(process)


def ended(process: int) -> int:
    """Wait for a program. If it does not end in time, it is killed, and its nursery is not used again."""
    try:
        return nursery().wait()
    except BaseException:  # a test's own deadline, too
        os.kill(process, signal.SIGKILL)
        nursery.cache_clear()
        raise
