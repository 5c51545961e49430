"""Send a judge's prompts to an engine; ``play/chat/asking.py`` asks a server.

The seed of a prompt derives from its text, so that a grade does not depend on the other prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillpress.core.engine import Engine, Sampling
from skillpress.core.interface import Ask
from skillpress.core.seeds import derive
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.generate import SECONDS, generate


def ask_engine(
    engine: Engine,
    encode: Callable[[str], TokenIds],
    decode: Callable[[TokenIds], str],
    sampling: Sampling,
    seed: int,
    seconds: float = SECONDS,
) -> Ask:
    """A function that asks an engine without other work.

    Args:
        encode: turns the prompt's text into tokens, with the template of the model's chat if it has one.
        sampling: a temperature of 0 is usual; a verdict that is cut off cannot be read.
        seconds: the longest time from one response to the next; after it, ``UnansweredError``.
    """

    def ask(prompts: Sequence[str]) -> list[str]:
        seeds = [derive(seed, "judge", prompt) for prompt in prompts]
        completions = generate(engine, [encode(prompt) for prompt in prompts], sampling, seeds, seconds)
        return [decode(completion.token_ids) for completion in completions]

    return ask
