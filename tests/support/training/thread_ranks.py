"""Ranks that are threads of one process: they communicate without starting processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from skillpress.rollouts.workers.distributed import Ranks

Result = TypeVar("Result")


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    table: list[Any] = field(default_factory=list)

    def gather(self, items: Sequence[Any]) -> list[Any]:
        self.table[self.rank] = list(items)
        self.meeting.wait(60)
        everything = [item for part in self.table for item in part]
        self.meeting.wait(60)
        return everything

    def sum(self, values: dict[str, float]) -> dict[str, float]:
        rows = self.gather([values])
        return {name: sum(row[name] for row in rows) for name in values}

    def maximum(self, values: Sequence[int]) -> list[int]:
        rows = self.gather([list(values)])
        return [max(column) for column in zip(*rows, strict=True)]

    def sum_in_place(self, values: torch.Tensor) -> None:
        rows = self.gather([values])
        total = sum(rows[1:], rows[0].clone())
        self.barrier()
        values.copy_(total)

    def send(self, tensors: Sequence[torch.Tensor], source: int) -> None:
        rows = self.gather([[tensor.detach().clone() for tensor in tensors]])
        for tensor, sent in zip(tensors, rows[source], strict=True):
            tensor.copy_(sent)

    def barrier(self) -> None:
        self.meeting.wait(60)


def on_ranks(size: int, work: Callable[[Ranks], Result]) -> list[Result]:
    """What ``work`` returns on each of ``size`` ranks."""
    meeting, table = threading.Barrier(size), [None] * size
    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(lambda rank: work(ThreadRanks(rank, size, meeting, table)), range(size)))
