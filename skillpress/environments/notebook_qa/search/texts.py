"""Limits and normal forms of texts, shared by all backends."""

from __future__ import annotations

import unicodedata

from skillpress.environments.text.words import encodable

QUERY_WORDS = 64
"""Maximum number of different words of a query that count, the first ones; further words would only cost
time."""
LONGEST_QUERY = 10_000
"""Maximum number of characters of a query that are used. A tool refuses longer queries."""
LONGEST_TITLE = 1000
"""Maximum number of characters of a title. Unicode's normalisation takes time quadratic in the number of
marks on one letter, and an agent may send any title. So a corpus must not have longer titles, and none is
looked up."""
SNIPPET_CHARACTERS = 300
"""Maximum number of characters of a hit's snippet."""
MOST_HITS = 1000
"""Maximum number of hits of one search. The agent names the number, and memory is allocated for it."""
PAGE_PARAGRAPHS = 1000
"""Maximum number of paragraphs under one title."""


def title_key(title: str) -> str:
    """A key that different spellings of one title share.

    Raises:
        ValueError: the title is longer than :data:`LONGEST_TITLE`.
    """
    if len(title) > LONGEST_TITLE:
        raise ValueError(f"a title has {len(title)} characters; at most {LONGEST_TITLE} are read")
    return " ".join(unicodedata.normalize("NFKC", encodable(title)).casefold().split())


def check_top_k(top_k: int) -> None:
    """Refuse an invalid number of hits.

    Raises:
        ValueError: it is not in 1 ... :data:`MOST_HITS`.
    """
    if not 1 <= top_k <= MOST_HITS:
        raise ValueError(f"top_k is {top_k}; 1 to {MOST_HITS} hits can be asked for")
