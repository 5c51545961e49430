"""The store of one episode: an SQLite database in memory; sqlite-vec compares its vectors.

A store is a value: :meth:`EpisodeStore.with_entries` returns a longer store and leaves the shorter one
unchanged. Both look at one database, and each sees only its own first ``size`` rows. If a store that was
already continued is continued again, it gets a copy of its rows, so that no branch sees the other's entries.

``apsw`` opens the database, since many builds of Python's own ``sqlite3`` cannot load extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from skillpress.core.errors import UserError

if TYPE_CHECKING:
    from apsw import Connection

EntryKind = Literal["turn", "summary", "fact"]
Vector = npt.NDArray[np.float32]
_TABLE = """
CREATE TABLE entries (step INTEGER, kind TEXT, name TEXT, words TEXT, vector BLOB)
"""
# Processors add in different orders, which changes the last bits: hence the rounding, and rowid for ties.
_NEAREST = """
SELECT step, kind, name, words, vector FROM (
    SELECT rowid AS row, * FROM entries
    WHERE rowid IN (SELECT max(rowid) FROM entries WHERE rowid <= :size GROUP BY kind, name)
      AND (kind <> 'turn' OR step <= :last)
    ORDER BY round(vec_distance_L2(vector, :query), 4), row DESC LIMIT :most
) ORDER BY row
"""
_ROWS = "SELECT step, kind, name, words, vector FROM entries WHERE rowid <= :size ORDER BY rowid"
_NEWEST = """
SELECT words FROM entries WHERE rowid <= :size AND kind = :kind AND name = :name ORDER BY rowid DESC LIMIT 1
"""


@dataclass(frozen=True)
class Entry:
    """One thing that the agent has seen."""

    step: int
    """Number of the step after which it was written, counted from 1."""
    kind: EntryKind
    name: str
    """A later entry of the same kind and name replaces this one."""
    words: str
    """What a prompt shows."""
    vector: bytes
    """Its unit vector, as float32."""


class EpisodeStore:
    """The entries of one episode so far."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._database = _empty()
        self._size = 0
        self._insert(entries)

    def with_entries(self, entries: Sequence[Entry]) -> EpisodeStore:
        """A store with this store's entries and further ones."""
        ((rows,),) = self._database.execute("SELECT count(*) FROM entries")
        if rows > self._size:
            return EpisodeStore([*self.entries(), *entries])
        longer = object.__new__(EpisodeStore)
        longer._database, longer._size = self._database, self._size
        longer._insert(entries)
        return longer

    def entries(self) -> list[Entry]:
        """All entries, also replaced ones, oldest first."""
        return _read(self._database.execute(_ROWS, {"size": self._size}))

    def newest(self, kind: EntryKind, name: str) -> str | None:
        """The words of the newest entry of this kind and name; None if there is none."""
        asked = {"size": self._size, "kind": kind, "name": name}
        return next((words for (words,) in self._database.execute(_NEWEST, asked)), None)

    def nearest(self, query: Vector, most: int, last_turn: int) -> list[Entry]:
        """The ``most`` entries nearest to a unit vector, oldest first; among equally near ones the newest are
        chosen.

        Args:
            last_turn: number of the newest turn that may be returned. The prompt shows later ones anyway.
        """
        asked = {"size": self._size, "last": last_turn, "query": query.tobytes(), "most": most}
        return _read(self._database.execute(_NEAREST, asked))

    def _insert(self, entries: Sequence[Entry]) -> None:
        rows = [(each.step, each.kind, each.name, each.words, each.vector) for each in entries]
        self._database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        self._size += len(rows)

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpisodeStore) and self.entries() == other.entries()

    def __hash__(self) -> int:
        return hash(self._size)

    def __reduce__(self) -> tuple[Any, ...]:
        return EpisodeStore, (self.entries(),)


def _read(rows: Any) -> list[Entry]:
    return [
        Entry(step=step, kind=kind, name=name, words=words, vector=vector)
        for step, kind, name, words, vector in rows
    ]


def _empty() -> Connection:
    """A database in memory with an empty table.

    Raises:
        UserError: a package is missing.
    """
    try:
        import apsw
        import sqlite_vec
    except ModuleNotFoundError as error:
        raise UserError(
            f"policy.state_update: is 'store', but the package {error.name} is not installed here; "
            "pip install 'skillpress[store]'"
        ) from None
    database = apsw.Connection(":memory:")
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    database.enable_load_extension(False)
    database.execute(_TABLE)
    return database
