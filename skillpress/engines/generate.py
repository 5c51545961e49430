"""All at once: one completion per prompt, from an engine that answers as it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from skillpress.interface import Completion, Request, Sampling, TokenIds

SECONDS = 600.0


def generate(
    engine: Any, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
) -> list[Completion]:
    """One completion per prompt, in order; the engine must have nothing else to do."""
    rows = enumerate(zip(prompts, seeds, strict=True))
    engine.submit([Request(key, prompt, sampling, seed) for key, (prompt, seed) in rows])
    found: dict[int, Completion] = {}
    last = time.monotonic()
    while len(found) < len(prompts):
        new = engine.completed(1.0)
        found |= dict(new)
        last = time.monotonic() if new else last
        if time.monotonic() - last > SECONDS:
            engine.abort()
            raise TimeoutError(f"{type(engine).__name__}: no answer for {SECONDS:g} seconds")
    return [found[key] for key in range(len(prompts))]
