"""Weights travel in parts: what arrives is what was sent, bit for bit, or nothing is given to the server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import torch

from skillpress.models.engines import parts
from skillpress.models.engines.parts import ALIGNMENT, TransferManifest, digest, fetch
from skillpress.models.engines.server import weights
from skillpress.models.engines.server.weights import OfferedWeights, offered

HERE = "127.0.0.1"
SECONDS = 60.0


def anything(manifest: TransferManifest) -> None:
    """Accept every manifest."""


def tensors() -> dict[str, torch.Tensor]:
    """Tensors of several types and awkward sizes, one of which is tied, one turned, one misaligned."""
    random = torch.Generator().manual_seed(0)
    long = torch.randn(1001, generator=random)
    tied = torch.randn(37, 5, generator=random)
    return {
        "odd": torch.randn(3, 7, generator=random).to(torch.bfloat16),
        "tied": tied,
        "lm_head.weight": tied,
        "turned": tied.T,
        "of a flat buffer": long[1:],
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 4),
        "bytes": torch.arange(13, dtype=torch.uint8),
    }


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 192 bytes, so that tensors are cut and parts hold several."""
    monkeypatch.setattr(parts, "PART_BYTES", 3 * ALIGNMENT)
    monkeypatch.setattr(weights, "CHUNK_BYTES", 100)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("connections", [1, 4])
def test_what_arrives_is_what_was_sent(connections: int) -> None:
    sent = tensors()
    with offered(OfferedWeights(sent), HERE) as url:
        found = fetch(url, SECONDS, anything, connections)
    assert found.keys() == sent.keys()
    for name, tensor in sent.items():
        assert found[name].dtype == tensor.dtype and found[name].equal(tensor)


def test_no_weights_are_a_transfer_too() -> None:
    with offered(OfferedWeights({}), HERE) as url:
        assert fetch(url, SECONDS, anything) == {}


@pytest.mark.parametrize("places", [(0, 1), (3, 70_000), (4, 4 + 2**16)])
@pytest.mark.parametrize("values", [(1, 2), (0, -(2**63)), (5, 5 - 2**63)])
def test_a_digest_tells_two_swapped_words(places: tuple[int, int], values: tuple[int, int]) -> None:
    words = torch.arange(2**17)
    words[list(places)] = torch.tensor(values)
    before = digest(words.view(torch.uint8))
    words[list(places)] = torch.tensor(values[::-1])
    assert digest(words.view(torch.uint8)) != before


def test_a_digest_is_the_sum_of_its_pieces_digests_wherever_they_lie_in_memory() -> None:
    data = torch.randint(0, 256, (2**20 + 13,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    moved = torch.cat([torch.zeros(3, dtype=torch.uint8), data])[3:]
    for cut in (8, 2**19, 2**20 + 8):
        assert (digest(moved[:cut]) + digest(data[cut:], cut)) % 2**64 == digest(data)
    changed = data.clone()
    changed[-1] ^= 1
    assert digest(changed) != digest(data)


@pytest.mark.usefixtures("small_parts")
def test_several_servers_fetch_at_the_same_time() -> None:
    sent, found = tensors(), []

    def take() -> None:
        found.append(fetch(url, SECONDS, anything))

    with offered(OfferedWeights(sent), HERE) as url:
        takers = [threading.Thread(target=take) for _ in range(3)]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join()
    assert len(found) == 3 and all(each["tied"].equal(sent["tied"]) for each in found)


def test_a_manifest_can_be_refused_before_anything_is_fetched() -> None:
    asked: list[range] = []

    class Watched(OfferedWeights):
        def chunks(self, wanted: range) -> Iterator[memoryview | bytes]:
            asked.append(wanted)
            return super().chunks(wanted)

    def refuse(manifest: TransferManifest) -> None:
        raise ValueError("weights of another model")

    with offered(Watched(tensors()), HERE) as url, pytest.raises(ValueError, match="another model"):
        fetch(url, SECONDS, refuse)
    assert not asked


@pytest.mark.usefixtures("small_parts")
def test_a_damaged_part_is_noticed() -> None:
    sent = tensors()
    offer = OfferedWeights(sent)
    sent["tied"][20, 3] += 1.0  # after the sums were made
    with (
        offered(offer, HERE) as url,
        pytest.raises(ValueError, match=r"part \d+ of the weights arrived damaged"),
    ):
        fetch(url, SECONDS, anything)


@contextmanager
def breaking_after(url: str, size: int) -> Iterator[str]:
    """The URL of a way to ``url`` that ends each connection after ``size`` bytes of answers."""
    there = urlsplit(url)

    def pass_on(client: socket.socket) -> None:
        with client, socket.create_connection((there.hostname, there.port)) as server:
            left = size
            while left:
                request = client.recv(65536)
                if not request:
                    return
                server.sendall(request)
                server.settimeout(0.2)
                try:
                    while left and (answer := server.recv(min(left, 65536))):
                        client.sendall(answer)
                        left -= len(answer)
                except TimeoutError:
                    continue

    with socket.create_server((HERE, 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=pass_on, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://{HERE}:{listening.getsockname()[1]}{there.path}"
        listening.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_breaks_in_the_middle_is_an_error() -> None:
    sent = {"large": torch.zeros(2**20)}
    with (
        offered(OfferedWeights(sent), HERE) as url,
        breaking_after(url, 2**16) as broken,
        pytest.raises(OSError, match="too early"),
    ):
        fetch(broken, SECONDS, anything)


def test_weights_that_are_not_offered_any_more_are_an_error() -> None:
    with offered(OfferedWeights(tensors()), HERE) as url:
        pass
    with pytest.raises(OSError, match="refused"):
        fetch(url, SECONDS, anything)


def test_another_address_or_range_than_the_offered_gets_nothing() -> None:
    offer = OfferedWeights(tensors())
    with offered(offer, HERE) as url:
        with pytest.raises(OSError, match="404"):
            fetch(url[:-1] + "_", SECONDS, anything)
        for wanted in ("", "bytes=0-", f"bytes=0-{offer.manifest.size}", "bytes=5-2"):
            connection = HTTPConnection(HERE, urlsplit(url).port, timeout=SECONDS)
            connection.request("GET", urlsplit(url).path + parts.DATA, headers={"Range": wanted})
            assert connection.getresponse().status == 404
            connection.close()


def changed(change: Callable[[dict[str, object]], object]) -> bytes:
    found = json.loads(TransferManifest.of({"a": torch.zeros(4)}).to_json())
    change(found)
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"tensors": 3}',
        changed(lambda found: found.pop("digests")),
        changed(lambda found: found.update(size=8)),
        changed(lambda found: found.update(digests=[])),
        changed(lambda found: found.update(part=100)),
        changed(lambda found: found.update(tensors={"a": ["float32", [4], 8]})),
        changed(lambda found: found.update(tensors={"a": ["float32", [-4], 0]})),
        changed(lambda found: found.update(tensors={"a": ["load", [4], 0]})),
        changed(lambda found: found.update(tensors={"a": ["Tensor", [4], 0]})),
    ],
)
def test_what_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="manifest"):
        TransferManifest.from_json(text)


def test_a_manifest_survives_its_journey() -> None:
    manifest = TransferManifest.of(
        OfferedWeights(tensors()).manifest.tensors(torch.zeros(2**13, dtype=torch.uint8))
    )
    assert TransferManifest.from_json(manifest.to_json()) == replace(manifest)
