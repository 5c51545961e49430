"""Shared by all judges: how they are asked, and which lines of a response are a verdict."""

from __future__ import annotations

import re
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
    """A function that asks an engine without other work; ``rollouts/chat/asking.py`` asks a server.

    The seed of a prompt derives from its text, so that a grade does not depend on the other prompts.

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


def asked(prompts: Sequence[str], ask: Ask) -> Sequence[str]:
    """A response for each prompt.

    Raises:
        ValueError: the judge gave more or fewer responses than there are prompts.
    """
    responses = ask(prompts)
    if len(responses) != len(prompts):
        raise ValueError(f"the judge gave {len(responses)} responses to {len(prompts)} prompts")
    return responses


def spoken(response: str) -> list[str]:
    """The lines that are not blank. Text in ``<think>`` does not count; if a thought was cut off, nothing
    does."""
    if "<think>" in response and "</think>" not in response:
        return []
    return [line for line in response.rpartition("</think>")[2].splitlines() if line.strip()]


def verdicts(response: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """The lines that are a verdict and have a label; a response of one line may leave the label out.

    Args:
        pattern: matches a verdict's words, with single spaces and without punctuation and markup. Its group
            ``label`` matches if the line says that it is a verdict.
    """
    lines = spoken(response)
    found = [match for match in map(pattern.fullmatch, map(_words, lines)) if match]
    labelled = [match for match in found if match["label"]]
    return labelled or (found if len(lines) == 1 else [])


def _words(line: str) -> str:
    """A line without its punctuation and markup."""
    return " ".join(re.findall(r"[^\W_]+", line))
