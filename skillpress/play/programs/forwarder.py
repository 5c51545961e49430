"""Inside the walls: pass connections to a port on to a Unix socket, and run a command.

    python forwarder.py PORT SOCKET COMMAND...

It imports the standard library alone, since nothing else may be there, and exits with the command's code.
"""

import asyncio
import subprocess
import sys
import threading


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
        there, back = await asyncio.open_unix_connection(path)
        await asyncio.gather(_pass(reader, back), _pass(there, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    ready.set()
    async with server:
        await server.serve_forever()


def main() -> int:
    """Run the command beside the forwarder."""
    port, path, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ready = threading.Event()
    threading.Thread(target=lambda: asyncio.run(_serve(port, path, ready)), daemon=True).start()
    if not ready.wait(30):
        return 125
    code = subprocess.run(command, check=False).returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
