"""The contract of a search, which a local index, a search server or the web can implement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from skillpress.core.errors import UserError


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
