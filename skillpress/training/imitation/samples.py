"""Samples of imitation in Arrow files that are mapped into memory, so any number takes little memory.

A file is written in parts and read as a ``datasets.Dataset``. The Dataset never copies the tokens: a row is
looked up in the mapped file when an update needs it, and the system gives the pages back when it needs room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import overload

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skillpress.core.chains import Chains, Pairs, selected
from skillpress.core.storage import atomic_path
from skillpress.core.trajectory import TokenIds

Sample = tuple[TokenIds, TokenIds]
"""A prompt and the response to learn."""
COLUMNS = ("prompt", "response")
SCHEMA = pa.schema([(name, pa.list_(pa.int32())) for name in COLUMNS])
ROWS_AT_ONCE = 10_000
"""The most samples of a part, the only ones that are in memory while a file is written."""

datasets.disable_progress_bars()


class Samples(Sequence[Sample]):
    """The samples of a Dataset with the columns ``prompt`` and ``response``."""

    def __init__(self, dataset: datasets.Dataset) -> None:
        self.dataset = dataset
        self._parts = [_Column(dataset.data.column(name)) for name in COLUMNS]

    @classmethod
    def written(cls, file: Path, samples: Iterable[Sample]) -> Samples:
        """Write samples as they come, atomically, and map the file; an existing file is replaced."""
        return cls.of_tables(file, _tables(samples))

    @classmethod
    def of_tables(cls, file: Path, tables: Iterable[pa.Table]) -> Samples:
        """Same as :meth:`written`, for tables with the two columns."""
        with (
            atomic_path(file, private=True) as temporary,
            pa.ipc.new_stream(str(temporary), SCHEMA) as stream,
        ):
            for table in tables:
                stream.write_table(table.cast(SCHEMA))
        return cls.read(file)

    @classmethod
    def read(cls, file: Path) -> Samples:
        """The samples of a file that :meth:`written` made."""
        return cls(datasets.Dataset.from_file(str(file)))

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """All samples of the parts, one part after another; no token is copied."""
        return cls(datasets.concatenate_datasets([part.dataset for part in parts]))

    def __len__(self) -> int:
        return len(self.dataset)

    @overload
    def __getitem__(self, row: int) -> Sample: ...
    @overload
    def __getitem__(self, row: slice) -> list[Sample]: ...
    def __getitem__(self, row: int | slice) -> Sample | list[Sample]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"no sample {row}: there are {len(self)}")
        return self.rows(np.array([row % len(self)]))[0]

    def __iter__(self) -> Iterator[Sample]:
        for first in range(0, len(self), ROWS_AT_ONCE):
            yield from self.rows(np.arange(first, min(first + ROWS_AT_ONCE, len(self))))

    def rows(self, wanted: NDArray[np.int64]) -> list[Sample]:
        """The samples in these rows."""
        return list(zip(*(part.lists(wanted) for part in self._parts), strict=True))

    @cached_property
    def goes_on(self) -> NDArray[np.bool_]:
        """[samples] whether each extends the previous one; False for the first."""
        prompts, responses = self._parts
        length = prompts.lengths[:-1] + responses.lengths[:-1]
        found = np.zeros(len(self), np.bool_)
        for row in np.flatnonzero(prompts.lengths[1:] >= length) + 1:
            before = np.concatenate([prompts.tokens(row - 1), responses.tokens(row - 1)])
            found[row] = np.array_equal(prompts.tokens(row)[: len(before)], before)
        return found

    @cached_property
    def chains(self) -> Chains:
        """Rows of neighbours that extend one another."""
        return Chains.of(self.goes_on)

    @cached_property
    def _chain(self) -> NDArray[np.int64]:
        return np.cumsum(~self.goes_on, dtype=np.int64)

    def select(self, wanted: NDArray[np.int64]) -> Pairs:
        """The samples in these rows, in memory."""
        return selected(self.rows(wanted), self._chain[wanted], wanted)


class _Column:
    """A column of lists of tokens as views of the mapped file."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        self._offsets: list[NDArray[np.int32]] = [chunk.offsets.to_numpy() for chunk in chunks]
        self._tokens: list[NDArray[np.int32]] = [chunk.values.to_numpy() for chunk in chunks]
        self._first = np.cumsum([0, *map(len, chunks)])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """[rows] number of tokens of each list."""
        found: list[NDArray[np.int32]] = [np.diff(offsets) for offsets in self._offsets]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def lists(self, rows: NDArray[np.int64]) -> list[TokenIds]:
        """The tokens of several rows as Python's numbers."""
        chunks = np.searchsorted(self._first, rows, "right") - 1
        places = rows - self._first[chunks]
        found = []
        for chunk, place in zip(chunks.tolist(), places.tolist(), strict=True):
            offsets = self._offsets[chunk]
            found.append(tuple(self._tokens[chunk][offsets[place] : offsets[place + 1]].tolist()))
        return found

    def tokens(self, row: int) -> NDArray[np.int32]:
        """The tokens of a row."""
        chunk = int(np.searchsorted(self._first, row, "right")) - 1
        place, offsets = row - self._first[chunk], self._offsets[chunk]
        return self._tokens[chunk][offsets[place] : offsets[place + 1]]


def _tables(samples: Iterable[Sample]) -> Iterator[pa.Table]:
    waiting = iter(samples)
    while some := list(islice(waiting, ROWS_AT_ONCE)):
        columns = [[sample[number] for sample in some] for number in range(len(COLUMNS))]
        yield pa.table([pa.array(column, pa.list_(pa.int32())) for column in columns], schema=SCHEMA)
