"""Send weights from the learner's memory to a server: one safetensors file over HTTP.

The file exists only in memory and is offered for one update, at an address that cannot be guessed and on the
network interface that leads to the server. The server downloads the complete file and only then applies it
(``skillpress/models/engines/transfer.py``); an interrupted transfer changes nothing.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import torch
from safetensors.torch import save

CHUNK_BYTES = 2**20
_PORTS = {"http": 80, "https": 443}


def to_safetensors(weights: Mapping[str, torch.Tensor]) -> bytes:
    """All tensors as one file. Tensors that share memory (a tied head) are written twice."""
    seen: set[int] = set()
    separate = {}
    for name, tensor in weights.items():
        tensor = tensor.detach().cpu().contiguous()
        shared = tensor.untyped_storage().data_ptr()
        separate[name] = tensor.clone() if shared in seen else tensor
        seen.add(shared)
    return save(separate)


def local_address(url: str, seconds: float) -> str:
    """This machine's address for a server, or ``OSError`` if the server cannot be reached."""
    parts = urlsplit(url)
    place = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    with socket.create_connection(place, timeout=seconds) as connection:
        address: str = connection.getsockname()[0]
    return address


@contextmanager
def offered(content: bytes, address: str) -> Iterator[str]:
    """Yield the URL at which ``content`` can be fetched from ``address`` while the context lasts."""
    path = f"/{secrets.token_hex(16)}.safetensors"

    class Handler(BaseHTTPRequestHandler):
        timeout = 60.0

        def do_GET(self) -> None:
            if self.path != path:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            view = memoryview(content)
            for start in range(0, len(content), CHUNK_BYTES):
                self.wfile.write(view[start : start + CHUNK_BYTES])

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing; the server's answer reports errors."""

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server_class = type("_Server", (ThreadingHTTPServer,), {"address_family": family, "daemon_threads": True})
    with server_class((address, 0), Handler) as server:
        serve = partial(server.serve_forever, poll_interval=0.05)
        threading.Thread(target=serve, name="offers weights", daemon=True).start()
        host = f"[{address}]" if ":" in address else address
        try:
            yield f"http://{host}:{server.server_port}{path}"
        finally:
            server.shutdown()
