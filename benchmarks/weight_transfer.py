"""How fast new weights reach servers: ``python -m benchmarks.weight_transfer [--gib 0.5] [--servers 1 2 4]``.

With ``--gpus`` the weights are on the first GPU, each receiver has one of the others, and collectives are
NCCL's (never run for want of GPUs); otherwise all are CPUs, with gloo.

Receivers are processes of this machine that fetch and verify as vLLM's workers do, without vLLM: parts over
several connections (``skillpress/models/engines/parts.py``), and parts by collectives (``link.py``). Beside
these, in turns, the way until November 2026: one safetensors file, made in memory, which each receiver
fetches over one connection and then reads. The time is from the learner's tensors to the last
receiver that has all of them as tensors, without vLLM's ``load_weights``. GiB/s are those of all receivers
together. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

import torch
from safetensors.torch import load, save

from benchmarks.machine import machine
from skillpress.core.http_clients import open_directly
from skillpress.models.engines.link import Link, Meeting
from skillpress.models.engines.parts import PART_BYTES, as_bytes, digest, fetch, fetch_manifest
from skillpress.models.engines.server.weights import OfferedWeights, offered

GIB = 2**30
HERE, CPU = "127.0.0.1", torch.device("cpu")
SECONDS = 600.0
FILE, COLLECTIVE = 0, -1
"""Ways that are not a number of connections."""
LAYERS = 24


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=0.5, help="size of the weights")
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 2, 4], help="numbers of receivers")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4], help="of each receiver")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--gpus", action="store_true", help="from GPU to GPU; one more than receivers")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    weights = _weights(chosen.gib, torch.device("cuda", 0) if chosen.gpus else CPU)
    size = sum(tensor.nbytes for tensor in weights.values()) / GIB
    ways = {"file": FILE, **{f"parts over HTTP, {count} connections": count for count in chosen.connections}}
    ways[f"collectives ({'nccl' if chosen.gpus else 'gloo'})"] = COLLECTIVE
    context = multiprocessing.get_context("spawn")
    places = [torch.device("cuda", 1 + n) if chosen.gpus else CPU for n in range(max(chosen.servers))]
    receivers = [_Receiver(context, place) for place in places]
    rows = []
    for servers in chosen.servers:
        some = receivers[:servers]
        took: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(chosen.repeats + 1):
            for name, way in ways.items():
                seconds = _transfer(weights, some, way)
                if repeat:  # the first is a warm-up
                    took[name].append(seconds)
        rows += [_row(servers, way, found, size) for way, found in took.items()]
    for receiver in receivers:
        receiver.end()
    print(
        json.dumps(
            {"options": {**vars(chosen), "part_bytes": PART_BYTES}, "machine": machine(), "rows": rows},
            indent=1,
        )
    )


def _row(servers: int, way: str, seconds: list[float], size: float) -> dict[str, Any]:
    """The measurements of one way: seconds, and GiB/s of all receivers together."""
    median = statistics.median(seconds)
    return {
        "servers": servers,
        "way": way,
        "seconds": round(median, 3),
        "seconds_from_to": [round(min(seconds), 3), round(max(seconds), 3)],
        "gib_per_second": round(servers * size / median, 3),
    }


def _weights(gib: float, device: torch.device) -> dict[str, torch.Tensor]:
    """Tensors of bfloat16 with the proportions of a language model: seven large, two small per layer."""
    width = round((gib * GIB / 2 / LAYERS / 11) ** 0.5 / 64) * 64
    shapes = [(width, width)] * 2 + [(width // 2, width)] * 2 + [(width, 8 * width // 3)] * 3 + [(width,)] * 2
    random = torch.Generator().manual_seed(0)
    return {
        f"model.layers.{layer}.{number}": torch.randn(shape, generator=random).to(device, torch.bfloat16)
        for layer in range(LAYERS)
        for number, shape in enumerate(shapes)
    }


def _transfer(weights: dict[str, torch.Tensor], receivers: list[_Receiver], way: int) -> float:
    """Seconds until all receivers have the weights."""
    begun = time.perf_counter()
    with ExitStack() as stack:
        if way == FILE:
            url = stack.enter_context(_offered_file(weights))
        else:
            offer = OfferedWeights(weights)
            url = stack.enter_context(offered(offer, HERE))
        for receiver in receivers:
            receiver.connection.send((url, way))
        if way == COLLECTIVE:
            pool = stack.enter_context(ThreadPoolExecutor(len(receivers)))
            for receiver in receivers:
                pool.submit(receiver.link.send, offer.manifest, offer.fill)
        sums = [receiver.answer() for receiver in receivers]
        seconds = time.perf_counter() - begun - max(spent for _, spent in sums)
    expected = sum(digest(as_bytes(tensor)) for tensor in weights.values()) % 2**64
    assert all(found == expected for found, _ in sums), "other weights arrived"
    return seconds


class _Receiver:
    """A process that takes weights."""

    def __init__(self, context: multiprocessing.context.SpawnContext, device: torch.device) -> None:
        """Start it.

        Args:
            device: where it takes them; with a GPU the weights are on the first one.
        """
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_receive, args=(theirs, device), daemon=True)
        self._process.start()
        meeting = Meeting(HERE, SECONDS)
        self.connection.send(meeting.port)
        self.link = meeting.join(2, CPU if device == CPU else torch.device("cuda", 0))

    def answer(self) -> tuple[int, float]:
        """(the digests' sum of what arrived, the seconds that this check took)."""
        if not self.connection.poll(SECONDS):
            raise TimeoutError("a receiver has not answered")
        found: tuple[int, float] = self.connection.recv()
        return found

    def end(self) -> None:
        """End the process."""
        self.connection.send(None)
        self.link.end()
        self._process.join(SECONDS)


def _receive(connection: Connection, device: torch.device) -> None:
    torch.set_num_threads(1)
    link = Link.to(HERE, connection.recv(), 1, 2, device, SECONDS)
    while (asked := connection.recv()) is not None:
        url, way = asked
        if way == COLLECTIVE:
            found = link.receive(fetch_manifest(url, SECONDS))
        elif way != FILE:
            found = fetch(url, SECONDS, lambda manifest: None, way)
        else:
            with open_directly(url, SECONDS) as answer:
                found = load(answer.read())
        found = {name: tensor.to(device) for name, tensor in found.items()}
        begun = time.perf_counter()
        total = sum(digest(as_bytes(tensor)) for tensor in found.values()) % 2**64
        connection.send((total, time.perf_counter() - begun))
        del found
    link.end()


@contextmanager
def _offered_file(weights: dict[str, torch.Tensor]) -> Iterator[str]:
    """The earlier way: the URL of one safetensors file."""
    content = save(dict(weights))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            view = memoryview(content)
            for start in range(0, len(content), 2**20):
                self.wfile.write(view[start : start + 2**20])

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((HERE, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://{HERE}:{server.server_port}/weights"
        server.shutdown()


if __name__ == "__main__":
    main()
