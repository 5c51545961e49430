"""Shared by all judges: how they are asked, and which lines of a response are a verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillpress.core.interface import Ask


def asked(prompts: Sequence[str], ask: Ask) -> Sequence[str]:
    """A response for each prompt.

    Raises:
        ValueError: the judge gave more or fewer responses than there are prompts.
    """
    responses = ask(prompts)
    if len(responses) != len(prompts):
        raise ValueError(f"the judge gave {len(responses)} responses to {len(prompts)} prompts")
    return responses


def verdicts(response: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """The lines that are a verdict and have a label; a response of one line may leave the label out.

    Text in ``<think>`` does not count. If a thought was cut off, nothing of it counts.

    Args:
        pattern: matches a verdict's words, with single spaces and without punctuation and markup. Its group
            ``label`` matches if the line says that it is a verdict.
    """
    if "<think>" in response and "</think>" not in response:
        return []
    lines = [line for line in response.rpartition("</think>")[2].splitlines() if line.strip()]
    found = [match for match in map(pattern.fullmatch, map(_words, lines)) if match]
    labelled = [match for match in found if match["label"]]
    return labelled or (found if len(lines) == 1 else [])


def _words(line: str) -> str:
    """A line without its punctuation and markup."""
    return " ".join(re.findall(r"[^\W_]+", line))
