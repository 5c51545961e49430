"""BM25 over an index on disk (tantivy).

    score(q, d) = Σ_{w in q} idf(w) · tf(w, d) · (k + 1) / (tf(w, d) + k · (1 - b + b · |d| / mean |d|))

with tantivy's k = 1.2 and b = 0.75, over the words of title and text together. A query is an *or* of its
words, built word by word. Among ties, the paragraph that is first in the corpus wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from skillpress.environments.notebook_qa.search.backend import Hit, Passage, SearchError
from skillpress.environments.notebook_qa.search.index import ANALYZER
from skillpress.environments.notebook_qa.search.texts import (
    LONGEST_TITLE,
    PAGE_PARAGRAPHS,
    SNIPPET_CHARACTERS,
    check_top_k,
    title_key,
)
from skillpress.environments.notebook_qa.search.words import query_words, snippet, text_analyzer

_TIES = 16
"""Number of additional hits that are read, so that the order of ties does not depend on the index's
segments."""


class TantivySearch:
    """Implements ``SearchBackend`` on one index; safe to use from many threads."""

    def __init__(self, folder: str | Path) -> None:
        """Args:
            folder: folder of an index, as returned by ``index.index_of``.

        Raises:
            SearchError: there is no index, or it is damaged.
        """
        try:
            index = tantivy.Index.open(str(folder))
        except (ValueError, OSError) as error:
            raise SearchError(
                f"{folder}: no readable index ({error}); name another folder for the index"
            ) from error
        index.register_tokenizer(ANALYZER, text_analyzer())
        self._schema, self._searcher = index.schema, index.searcher()

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """See ``SearchBackend``."""
        words = query_words(query)
        return tuple(
            Hit(
                title=found.title,
                snippet=snippet(found.text, words, SNIPPET_CHARACTERS),
                score=found.score,
                paragraph_id=found.id,
            )
            for found in self.passages(query, top_k)
        )

    def passages(self, query: str, top_k: int) -> tuple[Passage, ...]:
        """The same paragraphs as :meth:`search`, with their full texts."""
        check_top_k(top_k)
        terms = (Query.term_query(self._schema, "words", word) for word in query_words(query))
        found = self._documents(Query.boolean_query([(Occur.Should, term) for term in terms]), top_k + _TIES)
        best = sorted(found, key=lambda hit: (-hit[0], _number(hit[1])))[:top_k]
        return tuple(
            Passage(
                title=_stored(document, "title"),
                text=_stored(document, "text"),
                score=score,
                id=_stored(document, "id"),
            )
            for score, document in best
        )

    def read(self, title: str) -> str | None:
        """See ``SearchBackend``."""
        if len(title) > LONGEST_TITLE:
            return None
        query = Query.term_query(self._schema, "title_key", title_key(title))
        found = [document for _, document in self._documents(query, PAGE_PARAGRAPHS)]
        paragraphs = [_stored(document, "text") for document in sorted(found, key=_number)]
        return "\n\n".join(paragraphs) or None

    def _documents(self, query: Query, limit: int) -> list[tuple[float, tantivy.Document]]:
        """(score, paragraph) of the best hits."""
        hits = self._searcher.search(query, limit, count=False).hits
        return [(float(score), self._searcher.doc(address)) for score, address in hits]


def _stored(document: tantivy.Document, field: str) -> str:
    return bytes(_first(document, field)).decode()


def _number(document: tantivy.Document) -> int:
    return int(_first(document, "number"))


def _first(document: tantivy.Document, field: str) -> Any:
    return document.get_first(field)
