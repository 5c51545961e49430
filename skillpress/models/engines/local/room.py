"""Whether recorded steps can stay in a GPU's memory while the learner updates.

Their memory was always released before an update and every shape recorded again after it, which costs seconds
of each training step. That is needed only where the learner asks for the memory. How much it asks for is
measured: the first updates, which also allocate the optimizer's state, are made without the recorded steps.
From then on the steps stay if what is free beside them is more than the most that was ever allocated on top
of the learner's own memory, with a margin. On a GPU it ran in trainings of three steps only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

MARGIN = 1.25
"""An update may need this many times the memory of any update before it."""
MEASURED = 2
"""Number of releases until the memory of an update is known; the first update allocates the moments."""


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of a GPU as this process sees it, in bytes."""

    free: int
    """Memory that no process has."""
    reserved: int
    """Memory that this process has taken from the GPU."""
    allocated: int
    """The part of the reserved memory that tensors hold."""
    pooled: int
    """The part of the reserved memory that no tensor holds and that only graphs may use."""
    peak: int
    """The most that tensors have ever held."""


class MemoryRoom:
    """Decides, before each update, whether something in memory may stay."""

    def __init__(self, memory: Callable[[], DeviceMemory]) -> None:
        """``memory``: measures the device."""
        self._memory = memory
        self._releases = 0
        self._without = 0
        """Bytes that tensors held after the last release."""

    def suffices(self) -> bool:
        """Whether an update has enough memory beside everything that is held now."""
        if self._releases < MEASURED:
            return False
        now = self._memory()
        # Memory that the process has reserved and does not use serves the learner too, unless only graphs may
        # use it.
        available = now.free + now.reserved - now.allocated - now.pooled
        return available >= MARGIN * (now.peak - self._without)

    def released(self) -> None:
        """Record that everything that may stay has just been released."""
        self._without = self._memory().allocated
        self._releases += 1


def cuda_memory(device: torch.device) -> DeviceMemory:
    """Measure a GPU."""
    free, _ = torch.cuda.mem_get_info(device)
    segments = [each for each in torch.cuda.memory_snapshot() if each["device"] == device.index]
    own = [each for each in segments if tuple(each["segment_pool_id"]) != (0, 0)]
    return DeviceMemory(
        free=free,
        reserved=torch.cuda.memory_reserved(device),
        allocated=torch.cuda.memory_allocated(device),
        pooled=sum(each["total_size"] - each["allocated_size"] for each in own),
        peak=torch.cuda.max_memory_allocated(device),
    )
