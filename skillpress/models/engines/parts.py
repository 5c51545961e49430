"""Weights on their way to a server: one layout in memory, cut into parts that are fetched side by side.

All tensors lie one after the other, each at a multiple of 64 bytes, with zeros between them. The *manifest*
says where each lies, and has a digest of every part of ``PART_BYTES`` bytes. The receiver fetches the
manifest first, then the parts over several connections, straight into the memory that the tensors will be
views of: nothing is copied or parsed after it has arrived.

Both sides import this module: the learner, and vLLM's worker processes, in which skillpress need not be
installed. So it imports only torch and the standard library.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException
from math import prod
from typing import Any
from urllib.parse import urlsplit

import torch

ALIGNMENT = 64
"""Tensors begin at multiples of this many bytes, so that any type can be viewed there."""
PART_BYTES = 2**25
"""Bytes of a part, a multiple of the alignment; the last part may be shorter."""
CONNECTIONS = 4
"""Number of connections over which one receiver fetches its parts."""
DATA = "/data"
"""Suffix that turns the manifest's address into that of the data."""


@dataclass(frozen=True)
class TensorPlace:
    """Where a tensor lies."""

    dtype: str
    """Named as in torch, such as ``bfloat16``."""
    shape: tuple[int, ...]
    start: int
    """The number of bytes before it."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        size: int = getattr(torch, self.dtype).itemsize
        return prod(self.shape) * size


@dataclass(frozen=True)
class TransferManifest:
    """The tensors of a transfer: their places and digests."""

    places: Mapping[str, TensorPlace]
    """Name of a parameter to its place."""
    size: int
    """Number of bytes, padding included; a multiple of the alignment."""
    digests: tuple[int, ...]
    """The digest of each part (:func:`digest`)."""

    @classmethod
    def of(cls, pieces: Mapping[str, torch.Tensor]) -> TransferManifest:
        """The manifest of tensors that are contiguous in memory."""
        places, start = {}, 0
        for name, tensor in pieces.items():
            dtype = str(tensor.dtype).removeprefix("torch.")
            places[name] = TensorPlace(dtype, tuple(tensor.shape), start)
            start += -(-places[name].size // ALIGNMENT) * ALIGNMENT
        sums = [0] * -(-start // PART_BYTES)
        for name, place in places.items():
            flat = as_bytes(pieces[name])
            for part in range(place.start // PART_BYTES, -(-(place.start + place.size) // PART_BYTES)):
                begin = max(0, part * PART_BYTES - place.start)
                own = flat[begin : (part + 1) * PART_BYTES - place.start]
                sums[part] += digest(own, place.start + begin - part * PART_BYTES)
        return cls(places, start, tuple(value % 2**64 for value in sums))

    @property
    def parts(self) -> list[range]:
        """The bytes of each part."""
        starts = range(0, self.size, PART_BYTES)
        return [range(start, min(start + PART_BYTES, self.size)) for start in starts]

    def tensors(self, buffer: torch.Tensor) -> dict[str, torch.Tensor]:
        """Views of ``buffer`` [size], of uint8, which holds all parts."""
        return {
            name: buffer[place.start : place.start + place.size]
            .view(getattr(torch, place.dtype))
            .view(place.shape)
            for name, place in self.places.items()
        }

    def to_json(self) -> bytes:
        """The manifest as it is sent."""
        tensors = {name: [place.dtype, place.shape, place.start] for name, place in self.places.items()}
        return json.dumps(
            {"tensors": tensors, "size": self.size, "part": PART_BYTES, "digests": self.digests}
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> TransferManifest:
        """The manifest that was sent; ``ValueError`` for another document."""
        try:
            found: dict[str, Any] = json.loads(text)
            places = {
                name: TensorPlace(str(dtype), tuple(map(int, shape)), int(start))
                for name, (dtype, shape, start) in found["tensors"].items()
            }
            manifest = cls(places, int(found["size"]), tuple(map(int, found["digests"])))
            ends = [place.start + place.size for place in places.values()]
            starts = [place.start for place in places.values()]
            part = int(found["part"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"this is not a manifest of weights ({type(error).__name__}: {error}); do learner and server "
                "run the same version of skillpress?"
            ) from error
        if (
            part != PART_BYTES
            or len(manifest.digests) != len(manifest.parts)
            or max(ends, default=0) > manifest.size
            or any(start < 0 or start % ALIGNMENT for start in starts)
            or any(length < 0 for place in places.values() for length in place.shape)
        ):
            raise ValueError(
                "the manifest of weights contradicts itself; learner and server must run the same version of "
                "skillpress"
            )
        return manifest


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """[bytes] a view of a contiguous tensor's memory, of uint8."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def digest(data: torch.Tensor, start: int = 0) -> int:
    """A sum below 2**64 that depends on the content of ``data`` [bytes], of uint8, and on its order.

    Each 64-bit word is mixed, so that its highest bits count too, and multiplied by an odd number that
    belongs to its place. So swapped words change the sum. Zeros add nothing: the digest of a part is the sum
    of its pieces' digests. It is computed on the tensor's device, in chunks that fit into a cache.

    Args:
        start: bytes of the part before ``data``, a multiple of 8.
    """
    if len(data) % 8:
        data = torch.cat([data, data.new_zeros(-len(data) % 8)])
    elif data.storage_offset() % 8:
        data = data.clone()
    words, first, factors = data.view(torch.int64), start // 8, _factors(data.device)
    sums = []
    while len(words):
        chunk, place = divmod(first, _CHUNK_WORDS)
        count = min(_CHUNK_WORDS - place, len(words))
        mixed = words[:count] >> 32
        mixed += words[:count]
        mixed *= factors[place : place + count]
        sums.append(mixed.sum() * _odd(chunk + 1))
        words, first = words[count:], first + count
    return int(torch.stack(sums).sum()) % 2**64 if sums else 0


_CHUNK_WORDS = 2**16
"""Words that are multiplied at once: their products stay in a processor's cache."""


@cache
def _factors(device: torch.device) -> torch.Tensor:
    """[words of a chunk] the odd number of each place, as int64."""
    return torch.tensor([_odd(-place - 1) for place in range(_CHUNK_WORDS)], device=device)


def _odd(number: int) -> int:
    """An odd number with 64 pseudo-random bits (SplitMix64), as a signed integer."""
    z = number * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    z = (z ^ z >> 31) | 1
    return z - 2**64 if z >= 2**63 else z


def fetch(
    url: str,
    seconds: float,
    accept: Callable[[TransferManifest], None],
    connections: int = CONNECTIONS,
) -> dict[str, torch.Tensor]:
    """Fetch the weights that are offered at ``url``, whole and verified.

    Args:
        seconds: how long the other side may be silent.
        accept: called with the manifest before any data is fetched; raises an error to refuse it.

    Raises:
        OSError: a part cannot be fetched.
        ValueError: what arrived is not what the manifest says.
    """
    manifest = fetch_manifest(url, seconds)
    accept(manifest)
    buffer = torch.empty(manifest.size, dtype=torch.uint8)
    numbers, failed = iter(range(len(manifest.parts))), threading.Event()
    one_at_a_time = threading.Lock()

    def following() -> int | None:
        with one_at_a_time:
            return None if failed.is_set() else next(numbers, None)

    def fetch_some() -> None:
        connection = _connection(url, seconds)
        try:
            while (number := following()) is not None:
                _fetch_part(connection, urlsplit(url).path + DATA, manifest, number, buffer)
        except BaseException:
            failed.set()  # the other connections end after their parts
            raise
        finally:
            connection.close()

    with ThreadPoolExecutor(connections, "fetches weights") as pool:
        for done in [pool.submit(fetch_some) for _ in range(min(connections, len(manifest.parts)))]:
            done.result()
    return manifest.tensors(buffer)


def fetch_manifest(url: str, seconds: float) -> TransferManifest:
    """Fetch what is offered at ``url``; errors as for :func:`fetch`."""
    connection = _connection(url, seconds)
    try:
        connection.request("GET", urlsplit(url).path)
        answer = connection.getresponse()
        content = answer.read()
    except HTTPException as error:
        raise OSError(f"{url}: {type(error).__name__} {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError(f"{url}: {answer.status} {answer.reason}")
    return TransferManifest.from_json(content)


def _fetch_part(
    connection: HTTPConnection, path: str, manifest: TransferManifest, number: int, buffer: torch.Tensor
) -> None:
    part = manifest.parts[number]
    own = buffer[part.start : part.stop]
    try:
        connection.request("GET", path, headers={"Range": f"bytes={part.start}-{part.stop - 1}"})
        answer = connection.getresponse()
        if answer.status != 206:
            raise OSError(f"part {number} of the weights: {answer.status} {answer.reason}")
        _read_into(answer, own.numpy().data)
    except HTTPException as error:
        raise OSError(f"part {number} of the weights: {type(error).__name__} {error}") from error
    refuse_damage(manifest, number, own)


def _read_into(answer: Any, room: memoryview) -> None:
    """Fill ``room``; ``OSError`` if the answer has another length."""
    if int(answer.headers["Content-Length"] or -1) != len(room):
        raise OSError(f"{answer.headers['Content-Length']} bytes were sent instead of {len(room)}")
    while room:
        count = answer.readinto(room)
        if not count:
            raise OSError(f"the connection ended {len(room)} bytes too early")
        room = room[count:]


def refuse_damage(manifest: TransferManifest, number: int, data: torch.Tensor) -> None:
    """Raise ``ValueError`` if a part's ``data`` [bytes] has another digest than its sender computed."""
    if digest(data) != manifest.digests[number]:
        raise ValueError(
            f"part {number} of the weights arrived damaged: its digest is not the one that was sent"
        )


def _connection(url: str, seconds: float) -> HTTPConnection:
    """A connection that uses no proxy of the environment."""
    parts = urlsplit(url)
    return HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)


def split(places: Mapping[str, TensorPlace], wanted: range) -> Iterator[tuple[str | None, range]]:
    """The pieces that ``wanted`` bytes consist of: (parameter, its bytes), or (None, so many zeros).

    Args:
        places: in the order of their starts.
    """
    at = wanted.start
    for name, place in places.items():
        if place.start + place.size <= at:
            continue
        if place.start >= wanted.stop:
            break
        if place.start > at:
            yield None, range(place.start - at)
            at = place.start
        end = min(place.start + place.size, wanted.stop)
        yield name, range(at - place.start, end - place.start)
        at = end
    if at < wanted.stop:
        yield None, range(wanted.stop - at)
