"""All at once: one completion per prompt, from any engine."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.answers import ask
from skillpress.core.engine import Completion, Engine, Request, Sampling
from skillpress.core.trajectory import TokenIds

SECONDS = 600.0
"""From one completion to the next at most, where the caller says nothing."""


def generate(
    engine: Engine,
    prompts: Sequence[TokenIds],
    sampling: Sampling,
    seeds: Sequence[int],
    seconds: float = SECONDS,
) -> list[Completion]:
    """One completion per prompt, in order; the engine must have nothing else to do.

    Raises:
        UnansweredError: the engine completed nothing for so many seconds; what is left is aborted, as
            after any other error.
    """
    asked = zip(prompts, seeds, strict=True)
    return ask(
        engine, [Request(key, prompt, sampling, seed) for key, (prompt, seed) in enumerate(asked)], seconds
    )
