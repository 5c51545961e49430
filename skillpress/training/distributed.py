"""Data-parallel processes: how many there are, which one this is, and what they tell each other.

DeepSpeed looks for MPI unless the usual environment variables name the ranks, and compiles a
shared-memory collective on CPUs even for one process; both are settled here, when training starts
and not when a module is imported.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed


@dataclass(frozen=True)
class Ranks:
    """This process among the data-parallel ones."""

    rank: int = 0
    size: int = 1

    @property
    def device(self) -> torch.device:
        """The GPU of this rank, or the CPU where there is none."""
        return torch.device("cuda", self.rank) if torch.cuda.is_available() else torch.device("cpu")

    def share(self, count: int) -> range:
        """Which of ``count`` items (a multiple of the size) are this rank's own."""
        each = count // self.size
        return range(self.rank * each, (self.rank + 1) * each)

    def gather(self, items: Sequence[Any]) -> list[Any]:
        """The items of all ranks, in rank order, on every rank."""
        if self.size == 1:
            return list(items)
        everything: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(everything, list(items))
        return [item for part in everything for item in part]

    def sum(self, values: dict[str, float]) -> dict[str, float]:
        """Each value summed over the ranks."""
        if self.size == 1:
            return values
        total = torch.tensor(list(values.values()), dtype=torch.float64)
        if torch.distributed.get_backend() == "nccl":
            total = total.to(self.device)
        torch.distributed.all_reduce(total)
        return dict(zip(values, total.tolist(), strict=True))

    def barrier(self) -> None:
        """Wait until every rank has come here."""
        if self.size > 1:
            torch.distributed.barrier()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def join_ranks(ranks: Ranks, port: int) -> None:
    """Connect this process with the others through DeepSpeed (nccl on GPUs, gloo on CPUs)."""
    if torch.distributed.is_initialized():
        return
    cuda = torch.cuda.is_available()
    os.environ.update(
        RANK=str(ranks.rank),
        LOCAL_RANK=str(ranks.rank),
        WORLD_SIZE=str(ranks.size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    if not cuda:
        os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    if not cuda:
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed("nccl" if cuda else "gloo", verbose=False)
