"""The contract of a search, which a local index, a search server or the web may keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from skillpress.core.errors import UserError


class SearchError(UserError):
    """Paragraphs or index are missing, damaged or of another version; the message names them."""


class SearchUnansweredError(RuntimeError):
    """A server has not answered within the deadline, or only in part; it may the next time."""


@dataclass(frozen=True)
class Hit:
    """One paragraph that a search found."""

    title: str
    """What :meth:`SearchBackend.read` takes."""
    snippet: str
    """The part of the paragraph that says most of what was asked for, at most some hundred characters."""
    score: float
    """Higher is better; comparable within one search alone."""
    paragraph_id: str
    """Of the corpus; empty where the backend has none."""


class SearchBackend(Protocol):
    """Finds paragraphs. Any text is a query: no character has a meaning of its own, and none raises. Only the
    first ``texts.LONGEST_QUERY`` characters of a query are looked at."""

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """The best ``top_k`` paragraphs or fewer, best first; none where no word is found.

        The same query gets the same hits, in the same order. A backend that asks a server gives up after
        a deadline of its own.

        Raises:
            ValueError: ``top_k`` is not among 1 ... ``texts.MOST_HITS``.
        """
        ...

    def read(self, title: str) -> str | None:
        """All paragraphs under a title, in the corpus' order and with an empty line between; None where
        nothing has this title, as nothing has one longer than ``texts.LONGEST_TITLE``. Case, spacing and
        Unicode's forms of a letter do not matter."""
        ...
