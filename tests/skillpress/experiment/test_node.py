"""A node is divided between processes and servers, and changes are named by how much they lower the peak."""

from __future__ import annotations

from typing import Any

import pytest

from skillpress.experiment.fitting import SERVING, excess, fits, fullest
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.node import GIB, Devices, Servers, rows_of_server, server_demand, servers_here
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.experiment.remedies import COSTS, changed, most_helpful, peak_after
from tests.support.pages import ROOT

GB = 10**9
ROW = 2560 * 2 * 28 * 2 * 128 * 2
"""Bytes of the longest response: tokens, keys and values, layers, heads, size of a head, bytes."""


def experiment(*overlays: str, **sections: Any) -> tuple[dict[str, Any], Params, ModelShape]:
    values = read_yaml(ROOT / "params.yaml")
    for overlay in overlays:
        values = merge(values, read_yaml(ROOT / "params" / f"{overlay}.yaml"))
    values = merge(values, sections)
    params = check_params(values, source="a test")
    return values, params, KNOWN_SHAPES[params.policy.model]


def node(count: int = 8, memory: int = 80 * GB, servers: Servers = Servers()) -> Devices:  # noqa: B008
    return Devices(f"{count} devices", memory, count=count, servers=servers)


def at(*urls: str) -> dict[str, Any]:
    return {"name": "server", "urls": list(urls), "answer_seconds": 600.0}


def test_only_servers_at_this_machines_own_addresses_take_its_gpus() -> None:
    urls = ["http://127.0.0.1:8801", "http://localhost:8802", "http://[::1]:8803", "http://10.0.0.5:8801"]
    _, params, _ = experiment("paper_alfworld", engine=at(*urls))
    assert servers_here(params) == urls[:3]
    assert node(11).suffice(params) and not node(10).suffice(params)
    assert servers_here(experiment("paper_alfworld")[1]) == []


def test_a_server_holds_weights_and_keys_and_values_of_its_share_of_the_responses() -> None:
    """16 tasks x 8 rollouts of a step, shared by four servers; two bytes of each of the weights."""
    _, params, shape = experiment("paper_alfworld", "servers")
    assert rows_of_server(params) == 16 * 8 // 4
    held = server_demand(params, shape, node())
    assert (held.weights, held.cache, held.needed) == (2 * 1_543_714_304, 32 * ROW, 32 * ROW)
    spread = server_demand(params, shape, node(servers=Servers(gpus=2)))
    assert (spread.weights, spread.cache) == (1_543_714_304, 32 * ROW // 2)
    wide = server_demand(params, shape, node(servers=Servers(gpus=4)))
    assert wide.cache == 32 * ROW // 2, "four GPUs share two heads of keys and values: each is held twice"


def test_a_cache_takes_what_is_free_or_what_is_given_and_one_response_at_least() -> None:
    _, params, shape = experiment("paper_alfworld", "servers")
    tight = server_demand(params, shape, node(memory=5 * GB))
    assert tight.weights + tight.cache == int(0.9 * 5 * GB) and tight.cache < tight.needed
    assert server_demand(params, shape, node(memory=GB)).cache == ROW
    given = node(servers=Servers(cache_gib=40.0))
    assert server_demand(params, shape, given).cache == 40 * GIB


def test_a_server_too_large_for_its_gpu_is_the_one_that_does_not_fit() -> None:
    values, params, shape = experiment("paper_alfworld", "servers")
    devices = node(servers=Servers(cache_gib=80.0))
    assert fullest(params, shape, devices).phase == SERVING
    assert excess(params, shape, devices) == 2 * 1_543_714_304 + 80 * GIB - int(0.9 * 80 * GB)
    helping = most_helpful(values, shape, devices)
    assert [one.changes for one in helping] == [{"--server-cache": 40.0}] and helping[0].fits


@pytest.mark.parametrize(("memory", "number"), [(40 * GB, 2), (24 * GB, 2)])
@pytest.mark.parametrize("overlay", ["paper_alfworld", "paper_countdown", "paper_textworld_cooking"])
def test_the_changes_that_are_named_lower_the_peak_most(overlay: str, memory: int, number: int) -> None:
    """Each says what it saves, and no other single change of the usual keys saves more than the best one."""
    values, params, shape = experiment(overlay)
    devices = node(memory=memory)
    if fits(params, shape, devices):
        return
    now, helping = fullest(params, shape, devices).size, most_helpful(values, shape, devices, number)
    assert len(helping) == number
    assert [one.peak.size for one in helping] == sorted(one.peak.size for one in helping)
    for one in helping:
        other = changed(values, one.changes)
        assert other is not None and one.cost in COSTS.values()
        assert one.peak.size == fullest(other, shape, devices).size < now
        assert one.fits == fits(other, shape, devices)
    others: list[dict[str, Any]] = [
        {"training.gradient_checkpointing": True},
        {"training.deepspeed": "zero3_bf16"},
        {"training.lora": {"rank": 32, "alpha": 64}},
        {"sampling.slots": 64},
    ]
    for change in others:
        key = next(iter(change))
        if all(key not in one.changes for one in helping) and changed(values, change):
            assert peak_after(values, change, shape, devices).size >= helping[-1].peak.size, change


def test_too_few_gpus_are_answered_by_fewer_servers_or_processes() -> None:
    values, params, shape = experiment("paper_alfworld", "servers")
    six = node(6)
    assert not fits(params, shape, six)
    first, second = most_helpful(values, shape, six)
    assert first.changes == {"engine.urls": params.engine.model_dump()["urls"][:2]}
    assert second.changes == {"processes": 2} and first.fits and second.fits


def test_servers_apart_are_tried_and_take_the_gpus_that_are_left() -> None:
    """The engine's weights and cache leave the processes' GPUs, on a node with eight more than needed."""
    values, params, shape = experiment("paper_alfworld", training={"gradient_checkpointing": True})
    devices = node(16, 19 * GB)
    assert fullest(params, shape, devices).phase == "sampling" and not fits(params, shape, devices)
    found = most_helpful(values, shape, devices, number=10)
    (apart,) = [one for one in found if "engine" in one.changes]
    assert len(apart.changes["engine"]["urls"]) == 8 and "processes" not in apart.changes and apart.fits
