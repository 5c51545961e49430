"""Ask any engine for several completions at once: one per prompt."""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.answers import ask
from skillpress.core.engine import Completion, Engine, Request, Sampling
from skillpress.core.trajectory import TokenIds

SECONDS = 600.0
"""Maximum wait from one completion to the next, unless the caller sets another."""


def generate(
    engine: Engine,
    prompts: Sequence[TokenIds],
    sampling: Sampling,
    seeds: Sequence[int],
    seconds: float = SECONDS,
) -> list[Completion]:
    """Return one completion per prompt, in order. The engine must have no other open requests.

    Raises:
        UnansweredError: the engine completed nothing for ``seconds``. Open requests are aborted, as after any
            other error.
    """
    asked = zip(prompts, seeds, strict=True)
    return ask(
        engine, [Request(key, prompt, sampling, seed) for key, (prompt, seed) in enumerate(asked)], seconds
    )
