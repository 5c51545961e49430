"""What was computed once is remembered, within a number of entries and of bytes.

An agent chooses what is asked, and so what a cache holds: one that is bounded by entries alone can hold
gigabytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

ENTRY_BYTES = 300
"""Counted for each entry besides what its key and its value hold."""


@dataclass(frozen=True)
class CacheCounts:
    """How often something was asked for."""

    remembered: int
    asked: int
    """How often it had to be computed."""


class Remembered(Generic[Key, Value]):
    """The values that were used last, as many as fit; safe to use from many threads."""

    def __init__(self, entries: int, most_bytes: int, size: Callable[[Key, Value], int]) -> None:
        """
        Args:
            entries: how many there may be.
            most_bytes: of all entries together; an entry that is larger alone is not kept.
            size: bytes that a key and its value hold.
        """
        self._most, self._most_bytes, self._size = entries, most_bytes, size
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        """Key to (value, bytes), the longest unused first."""
        self._lock = threading.Lock()
        self._remembered = self._asked = 0
        self.held_bytes = 0
        """Bytes of all entries."""

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed unless it is remembered; an exception is not remembered."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                self._remembered += 1
                return self._entries[key][0]
            self._asked += 1
        value = compute()
        with self._lock:
            self._keep(key, value)
        return value

    def counts(self) -> CacheCounts:
        """Since it was made."""
        return CacheCounts(self._remembered, self._asked)

    def _keep(self, key: Key, value: Value) -> None:
        size = self._size(key, value) + ENTRY_BYTES
        if key in self._entries or size > self._most_bytes:  # another thread may have computed it too
            return
        self._entries[key] = value, size
        self.held_bytes += size
        while self.held_bytes > self._most_bytes or len(self._entries) > self._most:
            self.held_bytes -= self._entries.popitem(last=False)[1][1]
