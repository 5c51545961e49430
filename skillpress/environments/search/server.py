"""A retriever of our own: BM25 over a file of passages, behind Search-R1's protocol (``retriever.py``).

A request may contain many queries. Without ``return_scores`` its passages are bare documents, as in the
released server. Web pages are refused; programs that reach the port need no password.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skillpress.core.web import PageGuard
from skillpress.environments.notebook_qa.search.backend import Passage
from skillpress.environments.notebook_qa.search.texts import MOST_HITS
from skillpress.environments.search.parameters import PATH
from skillpress.environments.search.retriever import Retriever

LARGEST_REQUEST = 16 << 20
"""Maximum number of bytes of a request."""


class RetrievalRequest(BaseModel):
    """The body of a request."""

    queries: list[str]
    topk: Annotated[int, Field(ge=1, le=MOST_HITS)] = 3
    return_scores: bool = False


def retriever_app(retrieve: Retriever) -> Starlette:
    """The application of a retriever, which must be safe to use from many threads."""

    async def answer(request: Request) -> Response:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_REQUEST:
                return _refused(413, f"a request has at most {LARGEST_REQUEST >> 20} MiB")
        try:
            asked = RetrievalRequest.model_validate_json(bytes(body), strict=True)
        except ValidationError as error:
            return _refused(422, str(error))
        found = await run_in_threadpool(lambda: [retrieve(query, asked.topk) for query in asked.queries])
        return _json(200, {"result": [_documents(each, asked.return_scores) for each in found]})

    return Starlette(routes=[Route(PATH, answer, methods=["POST"])], middleware=[Middleware(PageGuard)])


def _documents(found: Sequence[Passage], scores: bool) -> list[dict[str, Any]]:
    documents = [{"id": each.id, "contents": f"{each.title}\n{each.text}"} for each in found]
    if not scores:
        return documents
    return [
        {"document": document, "score": each.score} for document, each in zip(documents, found, strict=True)
    ]


def _refused(status: int, why: str) -> Response:
    return _json(status, {"error": why})


def _json(status: int, content: Any) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")
