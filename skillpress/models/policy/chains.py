"""Which steps are one sequence: those whose prompts go on from one another.

A step's prompt *extends* an earlier step where it begins with that step's prompt and response, token by
token. Such steps are a chain. Its last prompt and response hold all of its tokens, and the responses before
are spans of it, each predicted from exactly what it was sampled from. Steps in between may be missing: their
tokens are still there, as part of the later prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from skillpress.core.trajectory import TokenIds

Pair = tuple[TokenIds, TokenIds]
"""A prompt and its response."""


def extends(after: TokenIds, before: Pair) -> bool:
    """Whether a prompt begins with an earlier one and its response."""
    prompt, response = before
    length = len(prompt) + len(response)
    return len(after) >= length and after[len(prompt) : length] == response and after[: len(prompt)] == prompt


def chains(pairs: Sequence[Pair]) -> list[range]:
    """Rows of neighbours that extend one another, in order; a pair that extends nothing begins a chain."""
    edges = [row for row in range(len(pairs)) if row == 0 or not extends(pairs[row][0], pairs[row - 1])]
    return [range(first, last) for first, last in pairwise([*edges, len(pairs)])]


def behind(pairs: Sequence[Pair], chain: range) -> TokenIds:
    """What follows a chain's first prompt: its responses and what was said between them."""
    prompt, response = pairs[chain[-1]]
    return prompt[len(pairs[chain[0]][0]) :] + response
