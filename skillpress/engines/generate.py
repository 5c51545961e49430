"""All at once: one completion per prompt, from any engine."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.answers import answers_to
from skillpress.interface import Completion, Engine, Request, Sampling, TokenIds

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
    engine.submit(
        [
            Request(key, prompt, sampling, seed)
            for key, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True))
        ]
    )
    try:
        found = answers_to(range(len(prompts)), engine.completed, seconds, f"the {type(engine).__name__}")
    except BaseException:
        engine.abort()
        raise
    return [found[key] for key in range(len(prompts))]
