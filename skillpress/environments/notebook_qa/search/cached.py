"""Answers remembered: a group of rollouts asks much the same, and so does an agent that goes in circles."""

from __future__ import annotations

from sys import getsizeof

from skillpress.environments.notebook_qa.search.backend import Hit, SearchBackend
from skillpress.environments.remembered import CacheCounts, Remembered

MOST_BYTES = 64 << 20
"""The remembered searches may hold this much, and the remembered pages as much again."""


class CachedSearch:
    """A backend and its last answers, in memory; safe to use from many threads.

    An error is not remembered: the next one who asks lets the backend try again.
    """

    def __init__(self, backend: SearchBackend, size: int, most_bytes: int = MOST_BYTES) -> None:
        """
        Args:
            size: searches remembered, and as many pages; the ones longest unused are forgotten.
            most_bytes: of the searches together, and as many of the pages.
        """
        self._backend = backend
        self._searches = Remembered[tuple[str, int], tuple[Hit, ...]](size, most_bytes, _search_bytes)
        self._pages = Remembered[str, str | None](size, most_bytes, _page_bytes)

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """See ``SearchBackend``."""
        return self._searches.get((query, top_k), lambda: self._backend.search(query, top_k))

    def read(self, title: str) -> str | None:
        """See ``SearchBackend``."""
        return self._pages.get(title, lambda: self._backend.read(title))

    def counts(self) -> CacheCounts:
        """The counts of searches and pages together."""
        searches, pages = self._searches.counts(), self._pages.counts()
        return CacheCounts(searches.remembered + pages.remembered, searches.asked + pages.asked)


def _search_bytes(asked: tuple[str, int], hits: tuple[Hit, ...]) -> int:
    texts = (text for hit in hits for text in (hit.title, hit.snippet, hit.paragraph_id))
    return getsizeof(asked[0]) + sum(map(getsizeof, texts)) + sum(map(getsizeof, hits))


def _page_bytes(title: str, text: str | None) -> int:
    return getsizeof(title) + getsizeof(text)
