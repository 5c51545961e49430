"""A node: its devices, and which of them a training process takes and which a server.

Each training process takes a GPU of its own, from GPU 0 on. The servers of engine ``server`` whose URLs name
this machine (``http://127.0.0.1:8801``) take the GPUs that follow. Each GPU of a server holds its share of
the weights, and keys and values of the responses that it samples at once. New weights arrive in main memory.
Servers at other addresses take nothing of the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from skillpress.core.web import is_loopback
from skillpress.experiment.estimate import longest
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params
from skillpress.models.engines.server import ServerParameters

MARGIN = 0.1
"""Share of a device's memory that stays free for uncounted needs: CUDA, NCCL, vLLM's work space, gaps."""
GIB = 2**30
SERVER_GPUS, SERVER_CACHE = "--server-gpus", "--server-cache"
"""The options of a dry run that say how servers are started; params.yaml does not have them."""


@dataclass(frozen=True)
class Servers:
    """How each server on the node is started."""

    gpus: int = 1
    """Number of GPUs over which its weights are spread."""
    cache_gib: float | None = None
    """GiB on each of its GPUs for keys and values; None means what its responses need, up to what is free."""


@dataclass(frozen=True)
class Devices:
    """The devices on which processes of imitation and training run, and servers beside them."""

    words: str
    """Name of the devices in messages."""
    memory: int
    """Bytes of memory of each."""
    count: int | None
    """Number of GPUs; None if all processes share a machine's memory."""
    here: bool = False
    """Whether the devices are this machine's."""
    nodes: int = 1
    """Number of machines that have an equal share of the GPUs and of the processes."""
    servers: Servers = Servers()

    def suffice(self, params: Params) -> bool:
        """Whether there is a device for each process, and there are enough others for the servers."""
        return self.count is None or params.processes <= self.for_processes(params)

    def for_processes(self, params: Params) -> int:
        """Number of GPUs that servers leave to processes; not defined without GPUs."""
        assert self.count is not None
        return self.count - self.servers.gpus * len(servers_here(params))

    def room(self, processes: int) -> int:
        """Bytes that each of so many processes can use; with GPUs also what a server can use of each."""
        free = int(self.memory * (1 - MARGIN))
        return free // processes if self.count is None else free

    def with_options(self, changes: Mapping[str, Any]) -> Devices:
        """The same devices with other options of the servers, if the changes name any."""
        servers = Servers(
            changes.get(SERVER_GPUS, self.servers.gpus), changes.get(SERVER_CACHE, self.servers.cache_gib)
        )
        return replace(self, servers=servers)


@dataclass(frozen=True)
class ServerDemand:
    """Bytes that a server takes of each of its GPUs."""

    weights: int
    cache: int
    """Keys and values."""
    needed: int
    """Keys and values of all responses that it samples at once; the rest of them waits if there are fewer."""


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


def server_demand(params: Params, shape: ModelShape, devices: Devices) -> ServerDemand:
    """The memory of a server on each of its GPUs; its cache has room for the longest response at least."""
    size, gpus = (2 if params.policy.dtype == "bfloat16" else 4), devices.servers.gpus
    heads = -(-shape.kv_heads // gpus)  # with fewer heads than GPUs, GPUs hold copies of a head
    row = longest(params, shape) * 2 * shape.layers * heads * shape.head_size * size
    weights, needed = -(-size * shape.parameters // gpus), rows_of_server(params) * row
    free = devices.room(params.processes) - weights
    given = devices.servers.cache_gib
    cache = max(row, min(needed, free)) if given is None else int(given * GIB)
    return ServerDemand(weights, cache, needed)
