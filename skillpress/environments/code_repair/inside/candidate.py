"""Run the judged program: each call in its own process, which returns a value.

The program can reach only the arguments of its call. It may damage this process, kill it, or write anything
in place of the value. Whatever it writes is then its value, and the comparison is made elsewhere.
"""

from __future__ import annotations

import importlib
import math
import os
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillpress.environments.code_repair.inside.values import Values

LOADED = (
    "bisect", "collections", "copy", "datetime", "fractions", "functools", "hashlib", "heapq", "itertools",
    "math", "operator", "random", "re", "statistics", "string", "typing",
)  # fmt: skip
"""Modules that programs import, loaded once for all calls."""
for name in LOADED:
    importlib.import_module(name)

MOST_BYTES = 1 << 20
"""Maximum size of a value."""
PATIENCE = 4
"""Elapsed seconds allowed for each second of processor time, since other processes use the machine too."""
CRASHED, TIMED_OUT, NOT_RUN = "!a crash", "!time-out", "!nothing, it was not run after a time-out"
"""Written in place of a value. A value never begins like this."""


def run_calls(
    source: str, entry: str, asked: Sequence[str | None], seconds: float, memory_mb: int
) -> list[str | None]:
    """Return what ``entry(*arguments)`` returns for each of these arguments, as text, or why there is no
    value; None for None. No calls are made after one that has timed out."""
    answers: list[str | None] = []
    for arguments in asked:
        if TIMED_OUT in answers:
            answers.append(NOT_RUN)
        else:
            answers.append(arguments and run_call(source, entry, arguments, seconds, memory_mb))
    return answers


def run_call(source: str, entry: str, arguments: str, seconds: float, memory_mb: int) -> str:
    """Make one call."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            _keep_only(writing)
            _silence()
            whole = math.ceil(seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)  # the limit is for programs that remove this one
            resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
            _write(writing, _evaluate(source, entry, arguments))
        finally:
            os._exit(0)
    os.close(writing)
    said, timed_out = _read(reading, time.monotonic() + PATIENCE * seconds)
    os.close(reading)
    try:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return CRASHED
    if timed_out or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGPROF)):
        return TIMED_OUT
    return said.decode(errors="replace") or CRASHED


def _evaluate(source: str, entry: str, arguments: str) -> bytes:
    try:
        values = Values()
        args, kwargs = values.read(arguments)
        module = types.ModuleType("program")
        sys.modules["program"] = module
        exec(compile(source, "program.py", "exec"), module.__dict__)
        return values.write(module.__dict__[entry](*args, **kwargs)).encode(errors="replace")
    except BaseException as error:  # noqa: BLE001  any exception of the program is its answer
        return f"!{type(error).__name__}".encode(errors="replace")


def _keep_only(descriptor: int) -> None:
    """Close all other descriptors: the program must not use the socket to the host."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, most)


def _silence() -> None:
    """Discard the program's output."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read(descriptor: int, until: float) -> tuple[bytes, bool]:
    """Return (the bytes received, whether the time ran out before the end)."""
    data = bytearray()
    while len(data) <= MOST_BYTES:
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return b"", True
        part = os.read(descriptor, 1 << 16)
        if not part:
            return bytes(data), False
        data += part
    return b"", False
