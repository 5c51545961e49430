"""A cache of answers: the rollouts of a group ask similar questions, and so does an agent that goes in
circles."""

from __future__ import annotations

from sys import getsizeof

from skillpress.environments.notebook_qa.search.backend import Hit, SearchBackend
from skillpress.environments.remembered import Remembered

MOST_BYTES = 64 << 20
"""Maximum size of the cached searches; the same again for the cached pages."""


class CachedSearch:
    """A backend and its last answers, in memory; safe to use from many threads.

    Errors are not cached: the next call tries the backend again.
    """

    def __init__(self, backend: SearchBackend, size: int, most_bytes: int = MOST_BYTES) -> None:
        """Args:
        size: maximum number of cached searches, and of cached pages; the least recently used are dropped.
        most_bytes: maximum size of the searches together, and of the pages together."""
        self._backend = backend
        self._searches = Remembered[tuple[str, int], tuple[Hit, ...]](size, most_bytes, _search_bytes)
        self._pages = Remembered[str, str | None](size, most_bytes, _page_bytes)

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """See ``SearchBackend``."""
        return self._searches.get((query, top_k), lambda: self._backend.search(query, top_k))

    def read(self, title: str) -> str | None:
        """See ``SearchBackend``."""
        return self._pages.get(title, lambda: self._backend.read(title))


def _search_bytes(asked: tuple[str, int], hits: tuple[Hit, ...]) -> int:
    texts = (text for hit in hits for text in (hit.title, hit.snippet, hit.paragraph_id))
    return getsizeof(asked[0]) + sum(map(getsizeof, texts)) + sum(map(getsizeof, hits))


def _page_bytes(title: str, text: str | None) -> int:
    return getsizeof(title) + getsizeof(text)
