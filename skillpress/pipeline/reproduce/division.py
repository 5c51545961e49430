"""How a node is divided, as text: which GPU holds what, whether it fits, and which changes help most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.experiment.estimate import training_memory
from skillpress.experiment.fitting import SERVING, Demand, demand, fits, fullest
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.node import (
    SERVER_CACHE,
    SERVER_GPUS,
    Devices,
    rows_of_server,
    server_demand,
    servers_here,
)
from skillpress.experiment.params import Params
from skillpress.experiment.remedies import Changes, most_helpful, peak_after, remedies
from skillpress.learn.training.learner import read_configuration
from skillpress.pipeline.reproduce.devices import GB


def check_servers(params: Params, shape: ModelShape, devices: Devices) -> None:
    """``ParamsError`` if options of servers are given for none, or the model cannot be spread so."""
    servers = devices.servers
    if (servers.gpus > 1 or servers.cache_gib is not None) and not servers_here(params):
        raise ParamsError(
            f"{SERVER_GPUS} and {SERVER_CACHE} are for servers on the node, and the experiment has none: "
            "take engine server with urls such as http://127.0.0.1:8801"
        )
    if shape.heads % servers.gpus:
        raise ParamsError(
            f"{SERVER_GPUS} is {servers.gpus}: the model's {shape.heads} attention heads cannot be spread "
            "evenly over so many"
        )


def division(params: Params, shape: ModelShape, devices: Devices) -> Iterator[str]:
    """Which GPUs processes and servers take, what each holds at its peak, and which are left; nothing without
    GPUs, or if there are too few."""
    if devices.count is None or not devices.suffice(params):
        return
    nodes, urls = devices.nodes, servers_here(params)
    ranks, gpus = params.processes // nodes, devices.count // nodes
    each = " of each node" if nodes > 1 else ""
    room = devices.room(params.processes) / GB
    yield f"division of {devices.words}, of which {room:.1f} GB each are counted on:"
    most = demand(params, shape, on_gpu=True)
    yield (
        f"  {_span(0, ranks)}{each}: a training process each, with at most {most.size / GB:.1f} GB, while "
        f"{most.phase}"
    )
    yield f"    {_parts(most)}"
    for number, url in enumerate(urls):
        yield from _server(params, shape, devices, url, ranks + number * devices.servers.gpus)
    if (taken := ranks + len(urls) * devices.servers.gpus) < gpus:
        yield f"  {_span(taken, gpus - taken)}{each}: free"
    if params.engine.shared and not urls:
        yield "  the engine's servers are at other addresses, and take nothing here"
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    if reference := parts["reference: weights"]:
        yield (
            f"  main memory{each}: {ranks * reference / GB:.1f} GB for the reference's weights while they do "
            "not score"
        )


def _server(params: Params, shape: ModelShape, devices: Devices, url: str, first: int) -> Iterator[str]:
    held, rows = server_demand(params, shape, devices), rows_of_server(params)
    total = (held.weights + held.cache) / GB
    room = (
        "room for all" if held.cache >= held.needed else f"{held.needed / GB:.1f} GB would have room for all"
    )
    spread = " on each" if devices.servers.gpus > 1 else ""
    yield f"  {_span(first, devices.servers.gpus)}: the server {url}, with at most {total:.1f} GB{spread}"
    yield (
        f"    weights {held.weights / GB:.1f}, keys and values {held.cache / GB:.1f} GB: {room} of {rows} "
        "responses at once"
    )


def _span(first: int, count: int) -> str:
    return f"GPU {first}" if count == 1 else f"GPUs {first} to {first + count - 1}"


def _parts(most: Demand) -> str:
    """The parts of a demand in GB, those of 0.05 and more, grouped by the part of the program."""
    groups: dict[str, list[str]] = {}
    for part, size in most.parts.items():
        group, _, name = part.partition(": ")
        if size >= GB / 20:
            groups.setdefault(group, []).append(f"{name} {size / GB:.1f}")
    return "; ".join(f"{group}: {', '.join(names)}" for group, names in groups.items()) + " GB"


def fit(
    values: Mapping[str, Any], params: Params, shape: ModelShape, devices: Devices
) -> tuple[list[str], bool]:
    """Whether it fits, as text and as a fact; if it does not, with the changes that help most."""
    processes, room = params.processes, f"{devices.room(params.processes) / GB:.1f} GB"
    each = f"each of {processes} processes" if processes > 1 else "the process"
    most = fullest(params, shape, devices)
    taker = "each GPU of a server" if most.phase == SERVING else each
    if fits(params, shape, devices):
        return [f"fits {devices.words}: {taker} takes at most {_amount(most)}, of {room}"], True
    if devices.suffice(params):
        lines = [f"does not fit {devices.words}: {taker} may take {_amount(most)}, and has {room}"]
    else:
        needed = f"{each} needs one"
        if urls := servers_here(params):
            needed += f", and {len(urls)} servers need {devices.servers.gpus} each"
        lines = [f"does not fit {devices.words}: {needed}"]
    return [*lines, *_changes(values, most, shape, devices)], False


def _changes(values: Mapping[str, Any], most: Demand, shape: ModelShape, devices: Devices) -> Iterator[str]:
    """The two changes that help most, and if neither suffices, changes that do together."""
    helping = most_helpful(values, shape, devices)
    if helping:
        yield "the changes that lower the peak most:"
    for one in helping:
        saved = (most.size - one.peak.size) / GB
        less = f"{saved:.1f} GB less" if saved > 0 else "a device for each"
        verdict = "it would fit" if one.fits else "not enough alone"
        yield f"  {_words(one.changes)}: {_amount(one.peak)}, {less}; {verdict} ({one.cost})"
    if any(one.fits for one in helping):
        return
    for changes in remedies(values, shape, devices):
        peak = peak_after(values, changes, shape, devices)
        yield f"it would fit with {_words(changes)}: {_amount(peak)}"
        return
    yield "no key of params.yaml makes it fit: take a smaller model, shorter prompts, or larger devices"


def _words(changes: Changes) -> str:
    """The changes as keys and values, options as they are typed."""
    return ", ".join(
        f"{key} {value:g}" if key.startswith("--") else f"{key}: {json.dumps(value)}"
        for key, value in changes.items()
    )


def _amount(found: Demand) -> str:
    return f"{found.size / GB:.1f} GB while {found.phase}"
