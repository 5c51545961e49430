"""The parameters of a request: all those that the server has not refused.

Servers accept different parameters. Some models call the longest response ``max_completion_tokens``, some do
not allow ``temperature``, and some APIs refuse every field that they do not know. A form is one way to write
the request. A refusal leads to the next form, which all requests use from then on, including those that were
refused in the old form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillpress.core.engine import Sampling

LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""The usual name of the longest response, and the name that some models use instead."""
STOP, STREAM, STREAM_OPTIONS = "stop", "stream", "stream_options"
OMITTABLE = (LIMIT, "temperature", "top_p", "top_k", "seed", STOP)
"""Parameters that can be omitted from a request."""
RESERVED = frozenset({*OMITTABLE, NEWER_LIMIT, STREAM, "model", "messages", "tools", "n"})
"""Fields of a request that only this package writes; a user's own fields have other names."""
SEEDS = 2**31
"""Servers accept seeds below this."""
EVERY_TOKEN = -1
"""Value of ``top_k`` with which vLLM and SGLang keep every token."""


@dataclass(frozen=True)
class RequestForm:
    """A way to write a request."""

    omitted: frozenset[str] = frozenset()
    """Omitted parameters, out of ``OMITTABLE``."""
    limit: str = LIMIT
    """The name of the parameter for the longest response."""
    explicit: bool = False
    """Whether to send values that have no effect too. vLLM and SGLang replace missing values by those of the
    model's ``generation_config.json``, so they must be sent ``top_p`` 1 explicitly."""
    stream: bool = False
    """Whether answers are asked for as streams, with the token counts at their ends."""

    @property
    def omits_limit(self) -> bool:
        """Whether the server decides how long a response may be."""
        return LIMIT in self.omitted

    def fields(self, sampling: Sampling, seed: int, stop: Sequence[str] = ()) -> dict[str, Any]:
        """The parameters by their names in the request; ``stop`` are texts that end a response."""
        values: dict[str, Any] = {
            LIMIT: sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if self.explicit or sampling.top_p < 1 else None,
            "top_k": sampling.top_k or (EVERY_TOKEN if self.explicit else None),
            "seed": seed % SEEDS,
            STOP: list(stop) or None,
            STREAM: self.stream or None,
            STREAM_OPTIONS: {"include_usage": True} if self.stream else None,
        }
        return {
            self.limit if name == LIMIT else name: value
            for name, value in values.items()
            if value is not None and name not in self.omitted
        }

    def without(self, refused: str) -> RequestForm | None:
        """The form to use after a parameter was refused; None if no form is left."""
        if refused == LIMIT:
            return replace(self, limit=NEWER_LIMIT)
        known = refused in (*OMITTABLE, STREAM_OPTIONS)
        return replace(self, omitted=self.omitted | {refused}) if known else None
