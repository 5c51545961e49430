"""Multi-hop question answering by search: queries in <search>, passages back, the answer in <answer>.

The interface is Search-R1's (Jin et al. 2025): its tags, its HTTP protocol of a retriever, its reward. The
questions and their rules are those of ``notebook_qa``. ``environment.py`` plays, ``retriever.py`` asks for
passages, and ``server.py`` is a retriever of our own (``skillpress serve-retriever``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from skillpress.core.http_clients import server_urls
from skillpress.core.interface import Environment, Rendering
from skillpress.environments.notebook_qa.parameters import (
    QUESTIONS,
    QuestionOracle,
    QuestionParameters,
)
from skillpress.environments.search.skills import SearchProjection
from skillpress.environments.section import Projection

RETRIEVER_VARIABLE = "SKILLPRESS_RETRIEVER"
"""Environment variable with the URL of a retriever, used if ``retriever`` is empty."""
PATH = "/retrieve"


class SearchParameters(QuestionParameters):
    """Which questions are asked, and which retriever finds the passages."""

    measures: ClassVar[tuple[str, ...]] = ("exact_match", "f1", "has_answer")
    """Measured at the last step."""

    retriever: str = ""
    """URL of a retriever, as ``skillpress serve-retriever`` starts one. If empty, it is
    ``$SKILLPRESS_RETRIEVER``, or else ``paragraphs.parquet`` is searched in this process."""
    top_k: Annotated[int, Field(ge=1, le=100)] = 3
    """Number of passages that a search returns."""
    passage_characters: Annotated[int, Field(ge=100)] = 2000
    """Maximum number of characters of a passage that the agent sees."""
    seconds: Annotated[float, Field(gt=0)] = 30.0
    """Maximum time of one request to the retriever; after three times as long, with retries, the run ends."""

    @field_validator("retriever")
    @classmethod
    def _is_a_server(cls, url: str) -> str:
        return server_urls([url.rstrip("/").removesuffix(PATH)])[0] if url else url

    @property
    def url(self) -> str:
        """The retriever's URL; empty if paragraphs are searched in this process."""
        named = self.retriever or os.environ.get(RETRIEVER_VARIABLE, "")
        return self._is_a_server(named)

    @property
    def data_files(self) -> tuple[str, ...]:
        """The files that its episodes read; without the paragraphs if a server has them."""
        return (QUESTIONS,) if self.url else super().data_files

    def make(self) -> Environment:
        from skillpress.environments.search.environment import SearchEpisodes

        return SearchEpisodes(self)

    def make_projection(self) -> Projection:
        return SearchProjection()

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.notebook_qa.compact import CompactRendering
        from skillpress.environments.search.prompts import SearchRendering, opening

        return {
            "compact": lambda history: CompactRendering(history),
            "text": lambda history: SearchRendering(history, opening(self.top_k), parser="search"),
        }

    def make_oracle(self) -> QuestionOracle:
        from skillpress.environments.search.oracle import SearchOracle

        return SearchOracle(self)
