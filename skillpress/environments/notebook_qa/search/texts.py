"""Texts as every backend takes them."""

from __future__ import annotations

import unicodedata

QUERY_WORDS = 64
"""Different words of a query that count, the first ones; what a text adds beyond costs time alone."""
LONGEST_QUERY = 10_000
"""Characters of a query that are looked at. A tool refuses a longer one."""
LONGEST_TITLE = 1000
"""Characters of a title. Unicode's normalisation takes time that grows with the square of the marks on one
letter, and an agent may name any title. So no corpus may have a longer title, and none is looked up."""
SNIPPET_CHARACTERS = 300
"""Of a hit's snippet at most."""
MOST_HITS = 1000
"""Of one search; an agent names the number, and memory is set aside for it."""
PAGE_PARAGRAPHS = 1000
"""Paragraphs under one title at most."""


def encodable(text: str) -> str:
    """The text with lone surrogates, which no UTF-8 can hold, replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def title_key(title: str) -> str:
    """What two ways of writing one title have in common.

    Raises:
        ValueError: it is longer than :data:`LONGEST_TITLE`.
    """
    if len(title) > LONGEST_TITLE:
        raise ValueError(f"a title has {len(title)} characters; at most {LONGEST_TITLE} are read")
    return " ".join(unicodedata.normalize("NFKC", encodable(title)).casefold().split())


def check_top_k(top_k: int) -> None:
    """Refuse a number of hits that no search gives.

    Raises:
        ValueError: it is not among 1 ... :data:`MOST_HITS`.
    """
    if not 1 <= top_k <= MOST_HITS:
        raise ValueError(f"top_k is {top_k}; 1 to {MOST_HITS} hits can be asked for")
