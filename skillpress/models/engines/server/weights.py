"""Send weights from the learner's memory to servers over HTTP, in parts (``parts.py``).

What is sent are the learner's own tensors: no file is made of them, neither on the disk nor in memory.
Weights on a GPU are copied to the CPU once. They are offered for one update, at an address that cannot be
guessed and on the network interface that leads to the server. A server downloads everything and only then
applies it (``skillpress/models/engines/transfer.py``); an interrupted transfer changes nothing.

Each connection has a thread of its own, which gives up Python's lock while it sends. So several servers, and
several connections of each, are served at the same time.
"""

from __future__ import annotations

import re
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import torch

from skillpress.models.engines.parts import DATA, TransferManifest, as_bytes, split

CHUNK_BYTES = 2**20
"""Bytes of one call that sends; a chunk that was just read from memory is still in the processor's cache."""
_PORTS = {"http": 80, "https": 443}
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class OfferedWeights:
    """Weights that are ready to be sent. They must not change while they are offered."""

    def __init__(self, weights: Mapping[str, torch.Tensor]) -> None:
        self._pieces = {name: tensor.detach().contiguous() for name, tensor in weights.items()}
        self.manifest = TransferManifest.of(self._pieces)
        self._memory: dict[str, memoryview] = {}
        self._one_at_a_time = threading.Lock()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next((tensor.device for tensor in self._pieces.values()), torch.device("cpu"))

    def fill(self, wanted: range, room: torch.Tensor) -> None:
        """Write the wanted bytes into ``room`` [bytes], of uint8, on the weights' device."""
        at = 0
        for name, piece in split(self.manifest.places, wanted):
            target = room[at : at + len(piece)]
            if name is None:
                target.zero_()
            else:
                target.copy_(as_bytes(self._pieces[name])[piece.start : piece.stop])
            at += len(piece)

    def chunks(self, wanted: range) -> Iterator[memoryview | bytes]:
        """The wanted bytes, in views of at most ``CHUNK_BYTES``."""
        with self._one_at_a_time:  # the first connection copies what is on a GPU, and the others wait for it
            for name, tensor in self._pieces.items():
                if name not in self._memory:
                    self._memory[name] = as_bytes(tensor.cpu()).numpy().data
        for owner, piece in split(self.manifest.places, wanted):
            whole: memoryview | bytes = bytes(len(piece)) if owner is None else self._memory[owner]
            for start in range(piece.start, piece.stop, CHUNK_BYTES):
                yield whole[start : min(start + CHUNK_BYTES, piece.stop)]


def local_address(url: str, seconds: float) -> str:
    """This machine's address for a server, or ``OSError`` if the server cannot be reached."""
    parts = urlsplit(url)
    place = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    with socket.create_connection(place, timeout=seconds) as connection:
        address: str = connection.getsockname()[0]
    return address


@contextmanager
def offered(offer: OfferedWeights, address: str) -> Iterator[str]:
    """Yield the URL at which the offer can be fetched from ``address`` within the block."""
    path, listing = f"/{secrets.token_hex(16)}", offer.manifest.to_json()

    class Handler(BaseHTTPRequestHandler):
        timeout = 60.0
        protocol_version = "HTTP/1.1"  # one connection fetches many parts
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path == path:
                self._begin(200, len(listing))
                self.wfile.write(listing)
            elif self.path == path + DATA and (wanted := self._wanted()) is not None:
                self._begin(206, len(wanted))
                for chunk in offer.chunks(wanted):
                    self.wfile.write(chunk)
            else:
                self.send_error(404)

        def _wanted(self) -> range | None:
            """The bytes that the request names; None if the offer does not have them."""
            found = _RANGE.fullmatch(self.headers.get("Range", ""))
            if found is None or not int(found[1]) <= int(found[2]) < offer.manifest.size:
                return None
            return range(int(found[1]), int(found[2]) + 1)

        def _begin(self, status: int, size: int) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing; the server's answer reports errors."""

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    settings = {"address_family": family, "daemon_threads": True, "request_queue_size": 256}
    server_class = type("_Server", (ThreadingHTTPServer,), settings)
    with server_class((address, 0), Handler) as server:
        serve = partial(server.serve_forever, poll_interval=0.05)
        threading.Thread(target=serve, name="offers weights", daemon=True).start()
        host = f"[{address}]" if ":" in address else address
        try:
            yield f"http://{host}:{server.server_port}{path}"
        finally:
            server.shutdown()
