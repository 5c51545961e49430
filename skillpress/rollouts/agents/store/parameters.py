"""The section ``policy.store``: what the store of an episode holds, and how much of it a prompt shows."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

from pydantic import Field, field_validator

from skillpress.core.errors import UserError
from skillpress.core.sections import PositiveInt, Section

NGRAMS = "ngrams"
"""Value of ``policy.store.embedding`` for hashed n-grams, which need no model."""

Written = Literal["turns", "summaries", "facts"]


class StoreParameters(Section):
    """``policy.store``: how the state update ``store`` keeps and shows what the agent has seen."""

    shown: PositiveInt
    """k: number of entries that a prompt shows, those nearest to its observation."""
    length: PositiveInt
    """Maximum number of characters of an entry; in compact prompts, of words."""
    embedding: Annotated[str, Field(min_length=1)] = NGRAMS
    """``ngrams`` (hashed pieces of words), or the folder of a model."""
    writes: Annotated[list[Written], Field(min_length=1, default_factory=lambda: ["turns"])]
    """The sources of entries: turns, summaries, facts (docs/agents.md)."""

    @field_validator("writes")
    @classmethod
    def _each_kind_once(cls, writes: list[str]) -> list[str]:
        if len(set(writes)) < len(writes):
            raise ValueError(f"is {writes}, must not repeat a kind")
        return writes

    @property
    def holds_own_words(self) -> bool:
        """Whether entries contain text that the policy itself has written."""
        return bool({"summaries", "facts"} & set(self.writes))

    @property
    def model(self) -> str | None:
        """The folder of the model that makes the vectors; None for n-grams."""
        return None if self.embedding == NGRAMS else self.embedding

    def libraries(self) -> dict[str, str]:
        """Maps the packages of the store to their versions.

        Raises:
            UserError: one is missing.
        """
        try:
            return {name: version(name) for name in ("apsw", "sqlite-vec")}
        except PackageNotFoundError as error:
            raise UserError(
                f"policy.state_update: is 'store', but the package {error.name} is not installed here; "
                "pip install 'skillpress[store]'"
            ) from None
