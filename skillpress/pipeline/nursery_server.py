"""The process that forks commands: it has imported the libraries whose imports take longest, and nothing of
this project. :mod:`skillpress.pipeline.nursery` starts ``python -P nursery_server.py LIBRARY ...`` with the
listening socket as its standard input.

A child changes into the folder of the command that asked, takes its environment and open files, and runs the
command's module as ``python -m`` would. So it imports the code of that folder, and only the libraries are
there already. It ends when the asking process has ended, and when this process has.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

PARENT = "SKILLPRESS_PARENT"
"""The variable of ``pipeline.parent``. What a child's command is to end with is this process."""
FORKED = "SKILLPRESS_FORKED"
"""The variable with a child's own process number, by which its command knows that it need not ask again."""
HEADER = struct.Struct("!Q")
"""The number of bytes of an order's JSON, sent with the open files."""
FILES = 3
"""Standard input, output and errors."""
ORDER_SECONDS = 30.0
"""An order that has not arrived by then is dropped."""
INTERRUPT = b"i"
"""What the asking process sends when it was interrupted."""


def main() -> None:
    """Import the named libraries, those that are there, and serve until the process that started this one has
    closed the other end of standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an asking process passes Ctrl-C on to its own child
    for library in sys.argv[1:]:
        with suppress(ImportError):
            import_module(library)
    gc.collect()
    gc.freeze()  # so that no collection touches, and thereby copies, what children share
    listener = socket.socket(fileno=os.dup(0))
    serve(listener)


def serve(listener: socket.socket) -> None:
    """Fork a child for every order, and tell each asking process its child's exit code."""
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(1, select.POLLHUP | select.POLLERR)
    while True:
        for handle, _ in poll.poll():
            if handle == 1:
                return
            if handle in running:
                poll.unregister(handle)
                _finish(handle, *running.pop(handle))
            elif (child := _accept(listener, running)) is not None:
                poll.register(child, select.POLLIN)


def _accept(listener: socket.socket, running: dict[int, tuple[int, socket.socket]]) -> int | None:
    """Fork the child that the next order asks for; returns its handle."""
    connection, _ = listener.accept()
    connection.settimeout(ORDER_SECONDS)
    try:
        order, files = receive(connection)
    except (OSError, ValueError):
        connection.close()
        return None
    connection.settimeout(None)
    child = os.fork()
    if child == 0:
        listener.close()
        for handle, (_, other) in running.items():
            os.close(handle)
            other.close()
        _become(order, files, connection)
    for file in files:
        os.close(file)
    handle = os.pidfd_open(child)
    running[handle] = (child, connection)
    return handle


def receive(connection: socket.socket) -> tuple[dict[str, Any], Sequence[int]]:
    """An order and the open files that came with it; ``ValueError`` if it is not whole."""
    header, files, _, _ = socket.recv_fds(connection, HEADER.size, FILES)
    if len(header) != HEADER.size or len(files) != FILES:
        raise ValueError("an order begins with its size and three open files")
    (left,) = HEADER.unpack(header)
    parts = []
    while left:
        part = connection.recv(min(left, 1 << 16))
        if not part:
            raise ValueError("the order is not whole")
        parts.append(part)
        left -= len(part)
    order: dict[str, Any] = json.loads(b"".join(parts))
    return order, files


def _finish(handle: int, child: int, connection: socket.socket) -> None:
    """Tell the asking process its child's exit code, as ``subprocess`` defines it."""
    os.close(handle)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):  # it may have ended
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    connection.close()


def _become(order: dict[str, Any], files: Sequence[int], connection: socket.socket) -> NoReturn:
    """Run the module as if Python had been started with it; ends without Python's slow clean-up."""
    code = 1
    try:
        os.setpgid(0, 0)  # a terminal's Ctrl-C comes once, from the asking process
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        if PARENT in os.environ:
            os.environ[PARENT] = str(os.getppid())
        os.environ[FORKED] = str(os.getpid())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=_attend, args=(connection,), daemon=True, name="attends").start()
        # This program's own folder is not on the path (-P); a command's folder is the first entry.
        sys.path.insert(0, order["folder"])
        sys.argv = [order["module"], *order["arguments"]]
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  as Python itself ends a program
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _attend(connection: socket.socket) -> None:
    """Pass the asking process's interruptions on, also to what this process has started, as a terminal would,
    and end when the asking process has ended."""
    with suppress(OSError):
        while said := connection.recv(1):
            if said == INTERRUPT:
                os.killpg(0, signal.SIGINT)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
