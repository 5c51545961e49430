"""Which parameters a request carries: all that the server has not refused.

Servers differ in what they take. Some models call the longest response ``max_completion_tokens``, some
allow no ``temperature``, some APIs refuse every field that they do not know. A form is one way to write the
request; a refusal leads to the next form, which all requests use from then on, those that were refused in
the old one included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skillpress.core.engine import Sampling

LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""What nearly every server calls the longest response, and what some models call it instead."""
OMITTABLE = (LIMIT, "temperature", "top_p", "top_k", "seed")
"""What a request can do without."""
SEEDS = 2**31
"""Servers take seeds below it."""
EVERY_TOKEN = -1
"""``top_k`` of vLLM and SGLang that keeps every token."""


@dataclass(frozen=True)
class Form:
    """How a request is written."""

    omitted: frozenset[str] = frozenset()
    """Out of ``OMITTABLE``."""
    limit: str = LIMIT
    """The name of the longest response."""
    explicit: bool = False
    """Whether values that change nothing are sent too. vLLM and SGLang replace missing ones by the
    model's ``generation_config.json``, so there ``top_p`` 1 has to be said."""

    @property
    def omits_limit(self) -> bool:
        """Whether the server decides how long a response may be."""
        return LIMIT in self.omitted

    def fields(self, sampling: Sampling, seed: int) -> dict[str, Any]:
        """The parameters by their names in the request."""
        values: dict[str, Any] = {
            LIMIT: sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if self.explicit or sampling.top_p < 1 else None,
            "top_k": sampling.top_k or (EVERY_TOKEN if self.explicit else None),
            "seed": seed % SEEDS,
        }
        return {
            self.limit if name == LIMIT else name: value
            for name, value in values.items()
            if value is not None and name not in self.omitted
        }

    def without(self, refused: str) -> Form | None:
        """The form to use after a parameter was refused; None where there is no other."""
        if refused == LIMIT:
            return replace(self, limit=NEWER_LIMIT)
        return replace(self, omitted=self.omitted | {refused}) if refused in OMITTABLE else None
