"""Weights by collectives, between threads that are ranks of a group of their own (gloo; NCCL needs GPUs)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from skillpress.models.engines import parts
from skillpress.models.engines.link import Link, LinkError, Meeting
from skillpress.models.engines.parts import ALIGNMENT
from skillpress.models.engines.server.weights import OfferedWeights

CPU = torch.device("cpu")
HERE = "127.0.0.1"
SECONDS = 60.0


@pytest.fixture
def links() -> Iterator[list[Link]]:
    """The learner's end and those of two workers."""
    meeting = Meeting(HERE, SECONDS)
    with ThreadPoolExecutor(2) as pool:
        workers = [pool.submit(Link.to, HERE, meeting.port, rank, 3, CPU, SECONDS) for rank in (1, 2)]
        found = [meeting.join(3, CPU), *(worker.result() for worker in workers)]
    yield found
    for link in found:
        link.end()


def weights() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {
        "a": torch.randn(3, 7, generator=random).to(torch.bfloat16),
        "b": torch.randn(101, generator=random),
    }


def test_all_workers_receive_what_the_learner_sends(
    links: list[Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 2 * ALIGNMENT)
    monkeypatch.setattr("skillpress.models.engines.link.PART_BYTES", 2 * ALIGNMENT)
    learner, *workers = links
    for scale in (1.0, -2.0):  # a link serves many updates
        sent = {name: scale * tensor for name, tensor in weights().items()}
        offer = OfferedWeights(sent)
        with ThreadPoolExecutor(2) as pool:
            received = [pool.submit(worker.receive, offer.manifest) for worker in workers]
            learner.send(offer.manifest, offer.fill)
        for found in received:
            assert {name: tensor.tolist() for name, tensor in found.result().items()} == {
                name: tensor.tolist() for name, tensor in sent.items()
            }


def test_what_arrives_damaged_is_refused(links: list[Link]) -> None:
    offer = OfferedWeights(weights())
    with ThreadPoolExecutor(2) as pool:
        received = [pool.submit(worker.receive, offer.manifest) for worker in links[1:]]
        links[0].send(offer.manifest, lambda wanted, room: room.zero_())
    for found in received:
        with pytest.raises(ValueError, match="part 0 of the weights arrived damaged"):
            found.result()


def test_a_transfer_that_a_worker_does_not_take_part_in_has_a_deadline(links: list[Link]) -> None:
    offer = OfferedWeights(weights())
    links[1].patience = 0.5
    with pytest.raises(LinkError, match=r"part 0 of the weights did not arrive: .*[Tt]imed? ?out"):
        links[1].receive(offer.manifest)


def test_the_end_of_a_link_ends_its_transfer(links: list[Link]) -> None:
    offer = OfferedWeights(weights())
    threading.Timer(0.2, links[1].end).start()
    with pytest.raises(LinkError):
        links[1].receive(offer.manifest)


def test_who_waits_for_a_worker_that_never_comes_has_a_deadline_and_can_give_up() -> None:
    with pytest.raises(LinkError, match=r"a group of 2 was not complete after 0\.5 seconds"):
        Meeting(HERE, 0.5).join(2, CPU)
    with pytest.raises(LinkError, match="no learner answers at"):
        Link.to(HERE, 9, 1, 2, CPU, 1.0)
    meeting, begun = Meeting(HERE, SECONDS), time.monotonic()
    threading.Timer(0.2, meeting.give_up).start()
    with pytest.raises(LinkError, match="a group of 2 was not complete when the wait was ended"):
        meeting.join(2, CPU)
    assert time.monotonic() - begun < SECONDS
