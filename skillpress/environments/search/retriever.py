"""Find passages with an index in this process, or with a server that speaks Search-R1's protocol.

    POST /retrieve {"queries": [text], "topk": 3, "return_scores": true}
    {"result": [[{"document": {"id": "7", "contents": "title\\ntext"}, "score": 12.5}, ...]]}

A server that does not answer is asked again, with growing pauses. Once the deadline has passed, the run ends
with an error that names it: an episode without its passages is not an episode of the task.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from skillpress.core.errors import UserError
from skillpress.environments.notebook_qa.parameters import PARAGRAPHS
from skillpress.environments.notebook_qa.search import open_search
from skillpress.environments.notebook_qa.search.backend import Passage
from skillpress.environments.remembered import Remembered
from skillpress.environments.search.parameters import PATH, RETRIEVER_VARIABLE, SearchParameters
from skillpress.rollouts.chat.connection import NoReplyError, ServerConnection

Retriever = Callable[[str, int], tuple[Passage, ...]]
"""Maps (query, number) to the best passages, best first."""
PATIENCE = 3
"""A search may take this multiple of ``seconds``, all attempts together."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds before the second attempt, and the longest pause; pauses double."""
AGAIN = frozenset({408, 425, 429})
"""Statuses below 500 after which another attempt may succeed."""
REMEMBERED, MOST_BYTES = 4096, 64 << 20
"""Limits of the cached searches of a server: their number and their size."""
SHOWN = 200
"""Maximum number of characters of a foreign message that an error repeats."""


class RetrieverError(UserError):
    """A retriever does not answer, or does not speak the protocol; the message names its URL."""


def retriever_of(section: SearchParameters) -> Retriever:
    """The section's retriever. An index is made if it does not exist."""
    if section.url:
        return _server(section.url, section.seconds)
    return _index(section.folder / PARAGRAPHS, section.index_home)


@cache
def _index(paragraphs: Path, home: Path) -> Retriever:
    return open_search(paragraphs, home).passages


@cache
def _server(url: str, seconds: float) -> Retriever:
    server = RetrieverServer(url, seconds)
    found = Remembered[tuple[str, int], tuple[Passage, ...]](REMEMBERED, MOST_BYTES, _bytes)
    return lambda query, top_k: found.get((query, top_k), lambda: server(query, top_k))


class RetrieverServer:
    """A retriever behind a URL; safe to use from many threads."""

    def __init__(self, url: str, seconds: float) -> None:
        """``seconds``: maximum time of one request."""
        self._url, self._seconds = url, seconds
        self._connection = ServerConnection(url, {})

    def __call__(self, query: str, top_k: int) -> tuple[Passage, ...]:
        """The best passages.

        Raises:
            RetrieverError: there is no answer before the deadline, or it is not the protocol's.
        """
        ends, pause = time.monotonic() + PATIENCE * self._seconds, FIRST_PAUSE
        asked = {"queries": [query], "topk": top_k, "return_scores": True}
        while True:
            try:
                reply = self._connection.send("POST", self._url + PATH, asked, self._seconds)
                if reply.status == 200:
                    return self._passages(reply.body)[:top_k]
                wrong = f"status {reply.status}: {reply.body[:SHOWN].decode(errors='replace')}"
                if reply.status < 500 and reply.status not in AGAIN:
                    raise RetrieverError(
                        f"environment.retriever: {self._url}{PATH} answers with {wrong}; name a retriever "
                        f"that speaks Search-R1's protocol"
                    )
            except NoReplyError as error:
                wrong = str(error)
            if time.monotonic() + pause >= ends:
                raise RetrieverError(
                    f"environment.retriever: {self._url} did not answer within "
                    f"{PATIENCE * self._seconds:g} seconds; its last error: {wrong}; is it running? "
                    f"`skillpress serve-retriever --passages FILE` starts one; {RETRIEVER_VARIABLE} or "
                    "environment.retriever names another"
                )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _passages(self, body: bytes) -> tuple[Passage, ...]:
        try:
            (found,) = json.loads(body)["result"]
            return tuple(map(_passage, found))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RetrieverError(
                f"environment.retriever: {self._url}{PATH} answers "
                f"{body[:SHOWN].decode(errors='replace')!r}, which is not Search-R1's protocol "
                f"({type(error).__name__}: {error})"
            ) from error


def _passage(found: dict[str, Any]) -> Passage:
    """A passage with or without a score."""
    document = found.get("document", found)
    title, _, text = document["contents"].partition("\n")
    return Passage(title, text, float(found.get("score", 0.0)), str(document.get("id", "")))


def _bytes(asked: tuple[str, int], found: tuple[Passage, ...]) -> int:
    return 2 * (len(asked[0]) + sum(len(each.title) + len(each.text) for each in found))
