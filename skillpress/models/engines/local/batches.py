"""Which rows are decoded together: as many as memory has room for, in batches that take about the same.

A decode step reads all weights, however few rows it has, so the number of batches is the least possible. Then
the batches' sizes are evened out: 1,024 rows are decoded as twice 512, not as 700 and 324.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

CACHE_BYTES = 8 << 30
"""Maximum bytes of the rows that are decoded together on a CPU; further rows wait."""
SHARE = 0.5
"""The share of a GPU's free memory that such rows may take. The rest is for activations of prompts, sequences
that are kept, and a learner that updates meanwhile."""
EVEN = 1.02
"""The largest batch may be larger than necessary by this factor."""


@dataclass(frozen=True)
class WaitingRow:
    """A row that waits for decoding."""

    number: int
    kept: int
    """Tokens of its prompt whose keys and values are known."""
    new: int
    """Further tokens of its prompt."""


Size = Callable[[int, int], int]
"""Bytes of a number of rows with a number of prompt columns."""


def memory_for_rows(device: torch.device, held: int) -> int:
    """Maximum bytes of the rows that are decoded together, of which ``held`` are already allocated."""
    if device.type != "cuda":
        return CACHE_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return share_of(free, unused, held)


def share_of(free: int, unused: int, held: int) -> int:
    """A share of the memory that is free, reserved by this process without use, or held by the former
    batch."""
    return int(SHARE * (free + unused + held))


def batches_of(rows: Sequence[WaitingRow], size: Size, limit: int) -> list[list[int]]:
    """The rows' numbers in batches, in order; a row that exceeds the limit alone is a batch of its own."""
    found = _filled(rows, size, limit)
    low, high = 0, limit
    while len(found) > 1 and high > EVEN * low + 1:
        middle = (low + high) // 2
        tried = _filled(rows, size, middle)
        if len(tried) > len(found):
            low = middle
        else:
            found, high = tried, middle
    return found


def _filled(rows: Sequence[WaitingRow], size: Size, limit: int) -> list[list[int]]:
    """Batches that are filled one after another."""
    batches: list[list[int]] = []
    kept = new = fresh = 0
    for row in rows:
        wider = (max(kept, row.kept), max(new, row.new if row.kept else 0), max(fresh, row.new))
        # Kept tokens end at the same column, and so do the new ones after them.
        columns = max(wider[0] + wider[1], wider[2])
        if not batches or size(len(batches[-1]) + 1, columns) > limit:
            batches.append([])
            wider = (row.kept, row.new if row.kept else 0, row.new)
        kept, new, fresh = wider
        batches[-1].append(row.number)
    return batches
