"""Data-parallel processes: how many there are, which one this is, and how they exchange data.

A rank calls ``settle`` first, which selects its own GPU. Collectives of objects, and all other calls that
name no GPU, use the current one, which is GPU 0 unless the process selects another. So this is the only
module that connects ranks, and it does so after ``settle``.

DeepSpeed looks for MPI unless the usual environment variables name the ranks, and it compiles a shared-memory
collective on CPUs even for one process. This module prevents both when training starts, not when a module is
imported.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch.distributed.distributed_c10d import _get_default_store

from skillpress.core.errors import UserError
from skillpress.rollouts.workers.ranks import SILENCE_SECONDS, free_port

ROLL_CALL_SECONDS = 10.0
"""How long the remaining ranks wait for each other's sign of life after a rank is lost."""

__all__ = ["Ranks", "free_port", "join_ranks", "settle"]


@dataclass(frozen=True)
class Ranks:
    """This process among the data-parallel ones."""

    rank: int = 0
    size: int = 1
    local_rank: int | None = field(default=None, kw_only=True)
    """The rank's number on its machine; None if all ranks are on one machine."""
    local_size: int | None = field(default=None, kw_only=True)
    """The number of ranks on its machine; None if all are on it."""

    @property
    def device(self) -> torch.device:
        """The GPU of this rank, or the CPU if there is no GPU."""
        return torch.device("cuda", self.place) if torch.cuda.is_available() else torch.device("cpu")

    @property
    def place(self) -> int:
        """The rank's number on its machine."""
        return self.rank if self.local_rank is None else self.local_rank

    @property
    def neighbours(self) -> int:
        """How many ranks share its machine's cores, including itself."""
        return self.size if self.local_size is None else self.local_size

    def share(self, count: int) -> range:
        """The part of ``count`` items (a multiple of the size) that belongs to this rank."""
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
        return dict(zip(values, self._reduced(total, torch.distributed.ReduceOp.SUM), strict=True))

    def maximum(self, values: Sequence[int]) -> list[int]:
        """The largest of each value over the ranks."""
        if self.size == 1:
            return list(values)
        return self._reduced(torch.tensor(values), torch.distributed.ReduceOp.MAX)

    def _reduced(self, values: torch.Tensor, how: torch.distributed.ReduceOp.RedOpType) -> list[Any]:
        if torch.distributed.get_backend() == "nccl":
            values = values.to(self.device)
        torch.distributed.all_reduce(values, how)
        return values.tolist()

    def sum_in_place(self, values: torch.Tensor) -> None:
        """Replace the values by their sums over the ranks, in one message, with the same bits on all."""
        if self.size > 1:
            torch.distributed.all_reduce(values)

    def send(self, tensors: Sequence[torch.Tensor], source: int) -> None:
        """Overwrite the tensors, of one type, by those of the rank ``source``, in one message."""
        if self.size == 1 or not tensors:
            return
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        torch.distributed.broadcast(flat, source)
        if source != self.rank:
            for tensor, part in zip(tensors, flat.split([each.numel() for each in tensors]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        if self.size > 1:
            torch.distributed.barrier()


def settle(ranks: Ranks) -> None:
    """Select GPU and threads, before anything else; ``UserError`` if there is no GPU for this rank."""
    if ranks.size > 1:
        torch.set_num_threads(1)  # cores are shared, and more threads would sum in another order
    if not torch.cuda.is_available():
        return
    gpus = torch.cuda.device_count()
    if ranks.place >= gpus:
        raise UserError(
            f"processes: rank {ranks.rank} of {ranks.size} is number {ranks.place + 1} on its machine and "
            f"sees {gpus} GPU{'s' * (gpus > 1)}, but each rank needs one of its own: set processes to {gpus} "
            "for each machine, or hide the GPUs (CUDA_VISIBLE_DEVICES=) to use the cores"
        )
    torch.cuda.set_device(ranks.device)


def join_ranks(ranks: Ranks, port: int | None, timeout_seconds: float = SILENCE_SECONDS) -> None:
    """Settle, then connect this process with the others through DeepSpeed (nccl on GPUs, gloo on CPUs).

    Args:
        port: port of this machine at which the ranks meet; None if a launcher's variables name it.
        timeout_seconds: how long a rank waits in a collective, which includes the slowest rank's episodes.

    Raises:
        UserError: as for :func:`settle`.
    """
    settle(ranks)
    os.environ["LOCAL_RANK"] = str(ranks.place)  # DeepSpeed reads it for every learner made later
    if torch.distributed.is_initialized():
        return
    # DeepSpeed 0.19 calls collectives by names that torch 2.13 has renamed.
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")
    cuda = torch.cuda.is_available()
    if not cuda:
        os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    if not cuda:
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(
        "nccl" if cuda else "gloo",
        auto_mpi_discovery=False,
        verbose=False,
        timeout=timedelta(seconds=timeout_seconds),
        init_method="env://" if port is None else f"tcp://127.0.0.1:{port}",
        rank=ranks.rank,
        world_size=ranks.size,
    )


def missing_ranks(rank: int, size: int, seconds: float = ROLL_CALL_SECONDS) -> list[int]:
    """The ranks that do not report within ``seconds``. All ranks call this after a failure."""
    if not torch.distributed.is_initialized() or torch.distributed.get_world_size() != size:
        return []  # these ranks were not connected yet
    store, until = _get_default_store(), time.monotonic() + seconds
    missing = []
    try:
        store.set(f"here/{rank}", "")
        for other in range(size):
            left = timedelta(seconds=max(0.1, until - time.monotonic()))
            try:
                store.wait([f"here/{other}"], left)
            except torch.distributed.DistStoreError:
                missing.append(other)
    except torch.distributed.DistNetworkError:  # the store itself, which rank 0 or the launcher holds
        return [0]
    return missing
