"""A cache that is limited by its number of entries and by its size in bytes.

An agent chooses what is requested, and thereby what a cache holds: a cache with a limit only on entries could
hold gigabytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

ENTRY_BYTES = 300
"""Number of bytes counted for each entry in addition to its key and its value."""


class Remembered(Generic[Key, Value]):
    """The most recently used values, as many as fit; safe to use from many threads."""

    def __init__(self, entries: int, most_bytes: int, size: Callable[[Key, Value], int]) -> None:
        """Args:
        entries: maximum number of entries.
        most_bytes: maximum size of all entries together; an entry that is larger by itself is not kept.
        size: returns the number of bytes that a key and its value hold."""
        self._most, self._most_bytes, self._size = entries, most_bytes, size
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        """Maps keys to (value, bytes), the least recently used first."""
        self._lock = threading.Lock()
        self.held_bytes = 0
        """Bytes of all entries."""

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value of a key; compute it unless it is cached. Exceptions are not cached."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        value = compute()
        with self._lock:
            self._keep(key, value)
        return value

    def _keep(self, key: Key, value: Value) -> None:
        size = self._size(key, value) + ENTRY_BYTES
        if key in self._entries or size > self._most_bytes:  # another thread may have computed it too
            return
        self._entries[key] = value, size
        self.held_bytes += size
        while self.held_bytes > self._most_bytes or len(self._entries) > self._most:
            self.held_bytes -= self._entries.popitem(last=False)[1][1]
