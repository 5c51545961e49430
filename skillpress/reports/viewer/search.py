"""Text search over the wide columns, a chunk of rows at a time.

A file of 10^6 steps holds some hundred megabytes of text, which take a second or two to read. So each request
continues the search for a moment and reports the progress; the search pauses when no request waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.reports.viewer.index import IndexedFile

STRETCH = 16_384
"""Rows that are searched before the clock is checked."""
MOMENT = 0.1
"""One request continues the search for this many seconds."""
SEARCHED = ("thought", "action", "observation")
"""Columns of steps. The first observation is searched once per episode."""


class TextSearch:
    """The episodes that contain a text, in upper or lower case."""

    def __init__(self, text: str, files: Sequence[IndexedFile]) -> None:
        """``text`` is in lower case."""
        self._text = text
        self._rows = sum(int(file.episodes["rows"].sum()) for file in files)
        self._done = 0
        self._found = np.zeros(sum(file.episodes.height for file in files), np.bool_)
        self._work = self._stretches(files)
        self._lock = threading.Lock()

    @property
    def progress(self) -> float:
        """The share of rows that were searched."""
        return self._done / self._rows if self._rows else 1.0

    @property
    def complete(self) -> bool:
        """Whether all rows were searched."""
        return self._done == self._rows

    def go_on(self) -> NDArray[np.bool_]:
        """Continue the search for a moment; returns for each episode whether the text was found so far."""
        with self._lock:
            until = time.monotonic() + MOMENT
            for rows in self._work:
                self._done += rows
                if time.monotonic() >= until:
                    break
            return self._found.copy()

    def _stretches(self, files: Sequence[IndexedFile]) -> Iterator[int]:
        """Search row by row; yields the number of rows searched since the last yield."""
        before = 0
        for file in files:
            starts = file.episodes["first_row"].to_numpy()
            rows = int(file.episodes["rows"].sum())
            for first in range(0, rows, STRETCH):
                count = min(STRETCH, rows - first)
                hits = self._hits(file, first, count, starts)
                self._found[before + np.searchsorted(starts, hits, side="right") - 1] = True
                yield count
            before += file.episodes.height

    def _hits(
        self, file: IndexedFile, first: int, count: int, starts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The rows of a chunk that contain the text."""
        begin, end = np.searchsorted(starts, [first, first + count])
        beginnings = pl.Series(starts[begin:end] - first)
        rows = file.slice(first, count)
        steps = rows.select(pl.any_horizontal(map(self._in, SEARCHED)).fill_null(False).alias("hit"))
        found = steps.collect()["hit"].arg_true().to_numpy()
        openings = rows.select("first_observation").collect()[beginnings.cast(pl.Int64)]
        opened = beginnings.filter(openings.select(self._in("first_observation")).to_series())
        hits: NDArray[np.int64] = first + np.concatenate([found, opened.to_numpy()]).astype(np.int64)
        return hits

    def _in(self, column: str) -> pl.Expr:
        return pl.col(column).str.to_lowercase().str.contains(self._text, literal=True)
