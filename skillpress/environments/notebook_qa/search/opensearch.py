"""The same search by an OpenSearch server, for corpora that are too large for one machine's disk.

It is written to OpenSearch's documented requests and responses and tested against those; it was not run
against a server. A query goes into ``multi_match``, which analyses text and has no syntax. The server's
answer counts only if it is whole: not timed out, and from every shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, TransportError

from skillpress.environments.notebook_qa.search.backend import Hit, SearchError, SearchUnansweredError
from skillpress.environments.notebook_qa.search.texts import (
    LONGEST_QUERY,
    LONGEST_TITLE,
    PAGE_PARAGRAPHS,
    QUERY_WORDS,
    SNIPPET_CHARACTERS,
    check_top_k,
    encodable,
    title_key,
)

INDEX_BODY: dict[str, Any] = {
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "title": {"type": "text", "analyzer": "english"},
            "text": {"type": "text", "analyzer": "english"},
            "title_key": {"type": "keyword"},
            "id": {"type": "keyword"},
            "number": {"type": "long"},
        },
    }
}
"""What ``client.indices.create`` is given for a corpus."""

_SEARCHED = ["title", "text"]
_SNIPPET = {
    "number_of_fragments": 1,
    "fragment_size": SNIPPET_CHARACTERS,
    "no_match_size": SNIPPET_CHARACTERS,
    "pre_tags": [""],
    "post_tags": [""],
}


def bulk_actions(rows: pl.DataFrame, index: str) -> Iterator[dict[str, Any]]:
    """What ``opensearchpy.helpers.bulk`` is given to fill an index; sent twice, it changes nothing.

    Args:
        rows: ``id``, ``title`` and ``text``, as ``index.read_corpus`` gives them.
    """
    for number, (paragraph, title, text) in enumerate(rows.select("id", "title", "text").iter_rows()):
        source = {"id": paragraph, "title": title, "text": text, "title_key": title_key(title)}
        yield {"_index": index, "_id": paragraph, "_source": source | {"number": number}}


class OpenSearchBackend:
    """Keeps ``SearchBackend`` on one index of a server; safe to use from many threads."""

    def __init__(self, client: OpenSearch, index: str, seconds: float) -> None:
        """
        Args:
            client: knows the address and the account; made with ``max_retries=0``, it keeps the deadline.
            seconds: for one answer.
        """
        self._client, self._index, self._seconds = client, index, seconds

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """See ``SearchBackend``.

        Raises:
            SearchError: the server has no such index.
            SearchUnansweredError: it did not answer, or not in full.
        """
        check_top_k(top_k)
        words = " ".join(encodable(query[:LONGEST_QUERY]).split()[:QUERY_WORDS])
        hits = self._hits(
            {
                "query": {
                    "multi_match": {"query": words, "fields": ["title", "text"], "type": "most_fields"}
                },
                "size": top_k,
                "sort": [{"_score": "desc"}, {"number": "asc"}],
                "track_scores": True,
                "_source": ["title", "id"],
                "highlight": {"fields": {"text": _SNIPPET}},
            }
        )
        return tuple(
            Hit(
                title=hit["_source"]["title"],
                snippet=hit.get("highlight", {}).get("text", [""])[0][:SNIPPET_CHARACTERS],
                score=float(hit["_score"]),
                paragraph_id=hit["_source"]["id"],
            )
            for hit in hits
        )

    def read(self, title: str) -> str | None:
        """See ``SearchBackend``; raises as ``search`` does."""
        if len(title) > LONGEST_TITLE:
            return None
        hits = self._hits(
            {
                "query": {"term": {"title_key": {"value": title_key(title)}}},
                "size": PAGE_PARAGRAPHS,
                "sort": [{"number": "asc"}],
                "_source": ["text"],
            }
        )
        return "\n\n".join(hit["_source"]["text"] for hit in hits) or None

    def _hits(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            answer = self._client.search(index=self._index, body=body, request_timeout=self._seconds)
        except NotFoundError as error:
            raise SearchError(f"search: the server has no index {self._index!r}; make and fill it") from error
        except TransportError as error:
            raise SearchUnansweredError(
                f"search: no answer from the index {self._index!r} within {self._seconds:g} s: {error}"
            ) from error
        failed = answer["_shards"]["failed"]
        if answer["timed_out"] or failed:
            raise SearchUnansweredError(
                f"search: the index {self._index!r} answered in part: timed out {answer['timed_out']}, "
                f"{failed} of {answer['_shards']['total']} shards failed"
            )
        return list(answer["hits"]["hits"])
