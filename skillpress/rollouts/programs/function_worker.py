"""The process that calls functions.

    python function_worker.py FD MODULE:FUNCTION [FOLDER...]

The module may be in one of the folders. The process reads a JSON line for each call, and writes one at the
call's end. Async functions share one loop; others run in threads. Its interpreter may lack all our packages,
so it imports only the standard library of Python 3.9 or later.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import select
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

THREADS = 256
"""Maximum number of functions without ``async`` that run at once."""
LONGEST = 64 << 10


def main(descriptor: int, name: str) -> None:
    """Serve until the other end closes."""
    connection = socket.socket(fileno=descriptor)
    threading.Thread(target=_end_after, args=(descriptor,), daemon=True).start()
    try:
        module, _, attribute = name.partition(":")
        function = getattr(import_module(module), attribute)
        ready = b"ready\n" if callable(function) else b"is not a function\n"
    except Exception as error:  # noqa: BLE001  said to the process that asked for it
        ready = f"{type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n"
    connection.sendall(ready)
    if ready == b"ready\n":
        asyncio.run(_serve(connection, function))


def _end_after(descriptor: int) -> None:
    """End this process, whatever it is doing, when the other end has closed."""
    closed = select.poll()
    closed.register(descriptor, 0)
    closed.poll()
    os._exit(0)


async def _serve(connection: socket.socket, function: Callable[..., Any]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    reader, writer = await asyncio.open_connection(sock=connection, limit=1 << 30)
    open_calls: dict[int, asyncio.Task[None]] = {}
    while line := await reader.readline():
        told = json.loads(line)
        number = told.pop("number")
        if told.pop("stop", False):
            if (call := open_calls.get(number)) is not None:
                call.cancel()
            continue

        open_calls[number] = asyncio.create_task(_call(function, number, told, writer))
        open_calls[number].add_done_callback(partial(_forget, open_calls, number))


def _forget(open_calls: dict[int, asyncio.Task[None]], number: int, ended: asyncio.Task[None]) -> None:
    open_calls.pop(number, None)


async def _call(
    function: Callable[..., Any], number: int, told: dict[str, Any], writer: asyncio.StreamWriter
) -> None:
    task, folder = told.pop("task"), told.pop("folder")
    if "folder" in inspect.signature(function).parameters:
        told["folder"] = folder
    said: dict[str, Any] = {"number": number, "crashed": False}
    try:
        if inspect.iscoroutinefunction(function):
            value = await function(task, **told)
        else:
            value = await asyncio.to_thread(function, task, **told)
        said["printed"] = value if isinstance(value, str) else json.dumps(value)
    except asyncio.CancelledError:
        return
    except BaseException as error:  # noqa: BLE001  also SystemExit: a program may end so
        said["crashed"] = not (isinstance(error, SystemExit) and not error.code)
        said["printed"] = "".join(traceback.format_exception(type(error), error, error.__traceback__))[
            -LONGEST:
        ]
    writer.write(json.dumps(said).encode() + b"\n")
    await writer.drain()


if __name__ == "__main__":
    sys.path[:1] = sys.argv[3:]  # in place of this file's folder, whose modules are not for the function
    main(int(sys.argv[1]), sys.argv[2])
