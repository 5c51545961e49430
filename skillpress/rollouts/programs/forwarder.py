"""Inside the isolation: pass connections to a port on to a Unix socket, and run a command.

    python forwarder.py PORT SOCKET FILE_BYTES PROCESSES COMMAND...

It imports only the standard library, since nothing else may be installed there. It exits with the command's
code, or with ``NO_ENDPOINT`` if nothing listens at the socket: then the command is not at fault. A connection
waits while the endpoint's queue is full, or the program has more connections than the forwarder can hold.
"""

import asyncio
import os
import resource
import socket
import subprocess
import sys
import threading

NO_ENDPOINT = 97
DESCRIPTORS = 1024
"""Maximum number of open files of one process. Pipes and sockets hold memory that belongs to no process."""
CONNECTIONS = DESCRIPTORS // 2 - 32
"""Maximum number of simultaneous connections, with two descriptors each. Further ones wait until one is
closed."""
LOOK_SECONDS = 0.05
"""Interval of attempts to reach an endpoint whose queue is full."""


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _reach(path: str) -> socket.socket:
    """A connection to the endpoint. The kernel does not queue for a Unix socket, so this tries again."""
    there = socket.socket(socket.AF_UNIX)
    there.setblocking(False)
    while True:
        try:
            there.connect(path)
            return there
        except BlockingIOError:
            await asyncio.sleep(LOOK_SECONDS)
        except OSError as error:
            print(f"forwarder: the endpoint's socket cannot be reached: {error}", file=sys.stderr, flush=True)
            os._exit(NO_ENDPOINT)


async def _forward(client: socket.socket, path: str, free: asyncio.Semaphore) -> None:
    try:
        reader, writer = await asyncio.open_connection(sock=client)
        there, back = await asyncio.open_unix_connection(sock=await _reach(path))
        await asyncio.gather(_pass(reader, back), _pass(there, writer))
    finally:
        free.release()


async def _serve(listener: socket.socket, path: str) -> None:
    free, forwarding = asyncio.Semaphore(CONNECTIONS), set()
    while await free.acquire():
        client, _ = await asyncio.get_running_loop().sock_accept(listener)
        forwarding.add(task := asyncio.create_task(_forward(client, path, free)))
        task.add_done_callback(forwarding.discard)


def _limit(file_bytes: int, processes: int) -> None:
    for kind, most in (
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
    ):
        resource.setrlimit(kind, (most, most))


def main() -> int:
    """Run the command and the forwarder."""
    port, path, file_bytes, processes, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)))  # what connects from now on waits in its queue
    listener.setblocking(False)
    threading.Thread(target=lambda: asyncio.run(_serve(listener, path)), daemon=True).start()
    _limit(int(file_bytes), int(processes))
    try:
        # It inherits what this process was given, and no descriptor that this process has made.
        code = subprocess.run(command, check=False, close_fds=False).returncode
    except OSError as error:
        print(f"{command[0]} cannot be started: {error}", file=sys.stderr, flush=True)
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
