"""Whether an experiment fits into the memory of some devices: of each process, and of servers beside them.

Each training process takes a GPU of its own. The servers of engine ``server`` whose URLs name this machine
(``http://127.0.0.1:8801``) take the GPUs that follow. Servers at other addresses take nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from skillpress.core.web import is_loopback
from skillpress.experiment.estimate import imitation_memory, parts_by_phase, training_memory
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params
from skillpress.models.engines.serve import ServerOptions
from skillpress.models.engines.server import ServerParameters
from skillpress.training.loop.optimizer import read_configuration
from skillpress.training.loop.reference_memory import stays_on_gpu

MARGIN = 0.1
"""Share of a device's memory that stays free for uncounted needs: CUDA, NCCL, vLLM's work space, gaps."""
GIB = 2**30
SERVING = "serving"
"""The phase of a server."""


@dataclass(frozen=True)
class Devices:
    """The devices on which processes of imitation and training run, and servers beside them."""

    words: str
    """Name of the devices in messages."""
    memory: int
    """Bytes of memory of each."""
    count: int | None
    """Number of GPUs; None if all processes share a machine's memory."""
    server_gpus: int = 1
    """Number of GPUs over which the weights of a server are spread."""
    server_cache: float = ServerOptions.cache_gib
    """GiB of keys and values on each GPU of a server."""

    def suffice(self, params: Params) -> bool:
        """Whether there is a device for each process, and there are enough others for the servers."""
        needed = params.processes + self.server_gpus * len(servers_here(params))
        return self.count is None or needed <= self.count

    def room(self, processes: int) -> int:
        """Bytes that each process can use; with GPUs, also the bytes that a server can use on each GPU."""
        free = int(self.memory * (1 - MARGIN))
        return free // processes if self.count is None else free


@dataclass(frozen=True)
class Demand:
    """The most memory that one process, or one GPU of a server, asks for."""

    size: int
    """Bytes."""
    phase: str
    """Phase in which the process asks for them."""
    parts: Mapping[str, int]
    """The parts that exist together in this phase, and the bytes of each."""


def demand(params: Params, shape: ModelShape, gpu: int | None) -> Demand:
    """The most memory that a process of imitation or training takes, or of playing if no step trains.

    Args:
        gpu: bytes of the process's GPU; None without one.
    """
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    parts |= imitation_memory(params, shape)
    phases = parts_by_phase(
        parts,
        params.engine.sleeps,
        on_gpu=gpu is not None,
        beside=params.training.lag > 0,
        resident=gpu is not None and stays_on_gpu(parts["reference: weights"], gpu, params.engine.sleeps),
    )
    if not params.training.steps:
        playing = {part: size for part, size in parts.items() if part.startswith("engine: ")}
        playing["comparing: whole weights"] = parts["comparing: whole weights"]
        phases = {"sampling": playing, "imitating": phases.get("imitating", {})}
    phase = max(phases, key=lambda each: sum(phases[each].values()))
    return Demand(sum(phases[phase].values()), phase, phases[phase])


def fullest(params: Params, shape: ModelShape, devices: Devices) -> Demand:
    """The demand of a process or, if it is larger, that of a server on one of the node's GPUs."""
    process = demand(params, shape, None if devices.count is None else devices.memory)
    if devices.count is None or not servers_here(params):
        return process
    assert isinstance(params.engine, ServerParameters)
    size = 2 if params.policy.dtype == "bfloat16" else 4
    parts = {
        "server: weights": -(-size * shape.parameters // devices.server_gpus),
        # Collectives bring all weights to each GPU of a server, beside those that it samples from.
        "server: new weights": 0 if params.engine.transfer == "http" else size * shape.parameters,
        "server: keys and values": int(devices.server_cache * GIB),
    }
    return max(process, Demand(sum(parts.values()), SERVING, parts), key=lambda each: each.size)


def fits(params: Params, shape: ModelShape, devices: Devices) -> bool:
    """Whether each process and each server has the memory that it asks for, and a margin stays free."""
    return devices.suffice(params) and fullest(params, shape, devices).size <= devices.room(params.processes)


def servers_here(params: Params) -> list[str]:
    """The URLs of the engine's servers that run on the machine that trains."""
    if not isinstance(params.engine, ServerParameters):
        return []
    return [url for url in params.engine.urls if is_loopback(urlsplit(url).hostname or "")]


def rows_of_server(params: Params) -> int:
    """The most responses that one of the engine's servers samples at once, if they share evenly.

    In training every process plays its groups at once, within its slots; otherwise one process plays.
    """
    assert isinstance(params.engine, ServerParameters)
    training, slots = params.training, params.sampling.slots
    group = training.tasks_per_step // params.processes * training.rollouts_per_task
    return -(-max(slots, params.processes * min(slots, group)) // len(params.engine.urls))
