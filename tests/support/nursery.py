"""Test programs that train, started from a process that has imported torch, transformers and DeepSpeed.

The imports take ten seconds of processor time and a small training takes two, so a test that starts three
programs would spend its time on imports. One process per pytest worker imports, and forks each program
(``programs/nursery_program.py``), whose memory and end are its own.
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
"""What a program may take, and for the first one the imports too."""


class Nursery:
    """One program at a time: after each ``start`` comes a ``wait``."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        number = theirs.fileno()
        command = [sys.executable, "-P", str(PROGRAMS / "nursery_program.py"), str(number)]
        self._server = subprocess.Popen(command, pass_fds=[number], stdin=subprocess.DEVNULL, env=importing())
        theirs.close()
        ours.settimeout(SECONDS)
        self._socket, self._answers = ours, ours.makefile()

    def start(self, command: list[str], output: int, errors: int) -> int:
        """The process number of a program that writes to these open files."""
        socket.send_fds(self._socket, [json.dumps(command).encode()], [output, errors])
        return int(self._answers.readline())

    def wait(self) -> int:
        """The program's return code, as ``subprocess`` counts it."""
        return int(self._answers.readline())

    def end(self) -> None:
        """Without a program that runs."""
        self._answers.close()
        self._socket.close()
        self._server.wait(60)


@cache
def nursery() -> Nursery:
    """This process's, made when it is first asked for."""
    made = Nursery()
    atexit.register(made.end)
    return made


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its output and its errors are text."""
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
    """Wait for a program; what does not end in time is killed, and its nursery is not used again."""
    try:
        return nursery().wait()
    except BaseException:  # a test's own deadline, too
        os.kill(process, signal.SIGKILL)
        nursery.cache_clear()
        raise
