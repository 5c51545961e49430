"""The contract of a search, which a local index, a search server or the web can implement, and a cache.

The rollouts of a group ask similar questions, and so does an agent that goes in circles.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import getsizeof
from typing import Protocol

from skillpress.core.errors import UserError
from skillpress.environments.remembered import Remembered

MOST_BYTES = 64 << 20
"""Maximum size of the cached searches; the same again for the cached pages."""


class SearchError(UserError):
    """Paragraphs or index are missing, damaged or of another version; the message names them."""


class SearchUnansweredError(RuntimeError):
    """A server has not answered within the deadline, or only in part; a later attempt may succeed."""


@dataclass(frozen=True)
class Hit:
    """One paragraph found by a search."""

    title: str
    """The argument for :meth:`SearchBackend.read`."""
    snippet: str
    """The part of the paragraph that best matches the query, at most some hundred characters."""
    score: float
    """Higher is better; comparable only within one search."""
    paragraph_id: str
    """Id in the corpus; empty if the backend has none."""


@dataclass(frozen=True)
class Passage:
    """A whole paragraph found by a search."""

    title: str
    text: str
    score: float
    """Higher is better; comparable only within one search."""
    id: str


class SearchBackend(Protocol):
    """Finds paragraphs. Any text is a query: no character has a special meaning, and none raises an error.
    Only the first ``texts.LONGEST_QUERY`` characters of a query are used."""

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """Return at most ``top_k`` paragraphs, best first; none if no word is found.

        The same query gets the same hits in the same order. A backend that asks a server has its own
        deadline.

        Raises:
            ValueError: ``top_k`` is not in 1 ... ``texts.MOST_HITS``.
        """
        ...

    def read(self, title: str) -> str | None:
        """All paragraphs under a title, in the corpus' order and separated by empty lines. None if no page
        has this title, which is always so for titles longer than ``texts.LONGEST_TITLE``. Case, spacing and
        Unicode's forms of a letter do not matter."""
        ...


class CachedSearch:
    """A backend with its last answers cached in memory; safe to use from many threads.

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
