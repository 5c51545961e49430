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
"""Seconds that a call may sleep for each second of its processor time. Time in which it waits for a processor
on a busy machine counts as neither."""
CRASHED, TIMED_OUT, NOT_RUN = "!a crash", "!time-out", "!nothing, it was not run after a time-out"
"""Written in place of a value. A value never begins like this."""


def run_calls(
    source: str, entry: str, asked: Sequence[str | None], seconds: float, memory_mb: int
) -> tuple[list[str | None], float]:
    """Return (answers, processor seconds of the slowest call). An answer is what ``entry(*arguments)``
    returns for these arguments, as text, or why there is no value; it is None if the arguments are None. No
    calls are made after one that has timed out."""
    answers: list[str | None] = []
    slowest = 0.0
    for arguments in asked:
        if TIMED_OUT in answers:
            answers.append(NOT_RUN)
        elif arguments is None:
            answers.append(None)
        else:
            answer, used = run_call(source, entry, arguments, seconds, memory_mb)
            answers.append(answer)
            slowest = max(slowest, used)
    return answers, slowest


def run_call(source: str, entry: str, arguments: str, seconds: float, memory_mb: int) -> tuple[str, float]:
    """Make one call; returns (answer, processor seconds)."""
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
    said, timed_out = _read(reading, child, PATIENCE * seconds)
    os.close(reading)
    try:
        os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return CRASHED, 0.0
    used = usage.ru_utime + usage.ru_stime
    if timed_out or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGPROF)):
        return TIMED_OUT, used
    return said.decode(errors="replace") or CRASHED, used


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


def _read(descriptor: int, child: int, patience: float) -> tuple[bytes, bool]:
    """Return (the bytes received, whether the child slept for ``patience`` seconds before the end)."""
    data, began = bytearray(), time.monotonic()
    while len(data) <= MOST_BYTES:
        left = began + patience - time.monotonic()
        if left <= 0:
            left += _awake(child)
        if left <= 0:
            return b"", True
        if not select.select([descriptor], [], [], left)[0]:
            continue
        part = os.read(descriptor, 1 << 16)
        if not part:
            return bytes(data), False
        data += part
    return b"", False


def _awake(child: int) -> float:
    """Seconds in which the child's threads have computed or waited for a processor; 0 if the kernel does not
    count that."""
    nanoseconds = 0
    try:
        for thread in os.listdir(f"/proc/{child}/task"):
            with open(f"/proc/{child}/task/{thread}/schedstat") as file:
                computed, waited, _ = map(int, file.read().split())
            nanoseconds += computed + waited
    except (OSError, ValueError):  # it has ended, or this kernel has no such file
        pass
    return nanoseconds / 1e9
