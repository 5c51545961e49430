"""Merge the parts of episode logs, in order of finishing, into one file in the order requested.

The file is written in two passes, and neither holds more than a slice of it in memory. The first sorts
slices: the episodes of consecutive numbers, read from the parts that hold any of them. Episodes finish in
roughly the order in which they begin, so each part contributes to few slices. The second pass joins the
slices.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import join_rollouts
from skillpress.core.tables import scan_table, write_table
from skillpress.rollouts.collection.episode_log import KIND, NUMBERED_SCHEMA

SLICE_ROWS = 16_384
"""Number of steps in a slice, or those of a single episode that has more."""


def write_in_order(destination: Path, stores: Sequence[ResumeStore], episodes: int, scratch: Path) -> None:
    """Write episodes 0 to ``episodes`` - 1, each from the log of the process that played it.

    Args:
        scratch: a folder to sort in. It is emptied first and removed afterwards.

    Raises:
        StorageError: a part is damaged, or an episode is missing or present twice.
    """
    parts = [_Part(path) for store in stores for _, path in store.parts(KIND)]
    steps = np.zeros(episodes, np.int64)
    for part in parts:
        steps[part.numbers] += part.steps
    if not steps.all() or sum(len(part.numbers) for part in parts) != episodes:
        raise StorageError(
            f"{stores[0].folder.parent}: {np.count_nonzero(steps)} of {episodes} episodes were found, "
            f"in {sum(len(part.numbers) for part in parts)} copies; delete the folder and run again"
        )
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        slices = []
        for first, last in _slices(steps):
            rows = [part.rows(first, last) for part in parts if part.holds(first, last)]
            frame = pl.concat(rows).sort("number", "step", maintain_order=True).drop("number").collect()
            slices.append(scratch / f"{first:08d}.parquet")
            write_table(slices[-1], frame, "rollouts")
        join_rollouts(destination, slices)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Part:
    """One file of an episode log. Only the positions of its episodes are kept in memory."""

    def __init__(self, path: Path) -> None:
        self._scan = scan_table(path, KIND, NUMBERED_SCHEMA)
        numbers = self._scan.select("number").collect()["number"].to_numpy()
        self.numbers: NDArray[np.int64]
        self.steps: NDArray[np.int64]
        self.numbers, self.steps = np.unique(numbers, return_counts=True)

    def holds(self, first: int, last: int) -> bool:
        """Whether it holds an episode with a number from ``first`` to before ``last``."""
        return bool(np.searchsorted(self.numbers, first) < np.searchsorted(self.numbers, last))

    def rows(self, first: int, last: int) -> pl.LazyFrame:
        """The rows of those episodes."""
        return self._scan.filter(pl.col("number").is_between(first, last, closed="left"))


def _slices(steps: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield (first number, last number + 1) of consecutive episodes whose steps fit into a slice."""
    ends = np.cumsum(steps)
    first = 0
    while first < len(steps):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + SLICE_ROWS, side="right")))
        yield first, last
        first = last
