"""Inside the isolation: pass connections to a port on to a Unix socket, and run a command.

    python forwarder.py PORT SOCKET FILE_BYTES PROCESSES COMMAND...

It imports the standard library alone, since nothing else may be there. It exits with the command's code, or
with ``NO_ENDPOINT`` if nothing listens at the socket: the command is not at fault then.
"""

import asyncio
import os
import resource
import subprocess
import sys
import threading

NO_ENDPOINT = 97
START_SECONDS = 30
DESCRIPTORS = 1024
"""Open files of one process; pipes and sockets hold memory that belongs to no process."""


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _serve(port: int, path: str, ready: threading.Event) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(path)
        except OSError as error:
            print(f"forwarder: the endpoint's socket cannot be reached: {error}", file=sys.stderr, flush=True)
            os._exit(NO_ENDPOINT)
        await asyncio.gather(_pass(reader, back), _pass(there, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    ready.set()
    async with server:
        await server.serve_forever()


def _limit(file_bytes: int, processes: int) -> None:
    for kind, most in (
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
    ):
        resource.setrlimit(kind, (most, most))


def main() -> int:
    """Run the command beside the forwarder."""
    port, path, file_bytes, processes, *command = sys.argv[1:]
    ready = threading.Event()
    threading.Thread(target=lambda: asyncio.run(_serve(int(port), path, ready)), daemon=True).start()
    if not ready.wait(START_SECONDS):
        return NO_ENDPOINT
    _limit(int(file_bytes), int(processes))
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        print(f"{command[0]} cannot be started: {error}", file=sys.stderr, flush=True)
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
