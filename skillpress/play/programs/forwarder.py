"""Inside the isolation: pass connections to a port on to a Unix socket, and run a command.

    python forwarder.py PORT SOCKET FILE_BYTES PROCESSES FILTER COMMAND...

It imports the standard library alone, since nothing else may be there. It exits with the command's code, or
with ``NO_ENDPOINT`` if nothing listens at the socket: the command is not at fault then. FILTER is the file of
a seccomp filter for all that runs inside, or empty for none.
"""

import asyncio
import ctypes
import os
import resource
import struct
import subprocess
import sys
import threading

NO_ENDPOINT = 97
START_SECONDS = 30
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
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


def _load_filter(path: str) -> None:
    """Load a seccomp filter; ``OSError`` if the kernel refuses."""
    with open(path, "rb") as file:
        content = file.read()
    instructions = ctypes.create_string_buffer(content, len(content))
    program = struct.pack("HP", len(content) // 8, ctypes.addressof(instructions))  # struct sock_fprog
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), f"the seccomp filter {path} cannot be loaded")


def main() -> int:
    """Run the command beside the forwarder."""
    port, path, file_bytes, processes, seccomp, *command = sys.argv[1:]
    if seccomp:
        _load_filter(seccomp)
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
