"""Whether an experiment fits into the memory of some devices: of each process, and of servers beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from skillpress.experiment.estimate import imitation_memory, parts_by_phase, training_memory
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.node import Devices, server_demand, servers_here
from skillpress.experiment.params import Params
from skillpress.learn.training.learner import read_configuration

SERVING = "serving"
"""The phase of a server."""


@dataclass(frozen=True)
class Demand:
    """The most memory that one process, or one GPU of a server, asks for."""

    size: int
    """Bytes."""
    phase: str
    """Phase in which the process asks for them."""
    parts: Mapping[str, int]
    """The parts that exist together in this phase, and the bytes of each."""


def demand(params: Params, shape: ModelShape, on_gpu: bool) -> Demand:
    """The most memory that a process of imitation or training takes; without training steps, of playing."""
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    parts |= imitation_memory(params, shape)
    phases = parts_by_phase(parts, params.engine.sleeps, on_gpu, beside=params.training.lag > 0)
    if not params.training.steps:
        playing = {part: size for part, size in parts.items() if part.startswith("engine: ")}
        playing["comparing: whole weights"] = parts["comparing: whole weights"]
        phases = {"sampling": playing, "imitating": phases.get("imitating", {})}
    phase = max(phases, key=lambda each: sum(phases[each].values()))
    return Demand(sum(phases[phase].values()), phase, phases[phase])


def fullest(params: Params, shape: ModelShape, devices: Devices) -> Demand:
    """The demand of a process or, if it is larger, that of a server on one of the node's GPUs."""
    process = demand(params, shape, devices.count is not None)
    if devices.count is None or not servers_here(params):
        return process
    server = server_demand(params, shape, devices)
    parts = {"server: weights": server.weights, "server: keys and values": server.cache}
    return max(process, Demand(sum(parts.values()), SERVING, parts), key=lambda each: each.size)


def fits(params: Params, shape: ModelShape, devices: Devices) -> bool:
    """Whether each process and each server has the memory that it asks for, and a margin stays free."""
    return excess(params, shape, devices) <= 0


def excess(params: Params, shape: ModelShape, devices: Devices) -> float:
    """Bytes that a process or a server asks for beyond its limit; infinite if one has no device."""
    if not devices.suffice(params):
        return inf
    return fullest(params, shape, devices).size - devices.room(params.processes)
