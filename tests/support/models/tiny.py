"""A scratch policy small enough for tests."""

from __future__ import annotations

from skillpress.core.interface import ScratchVocabulary
from skillpress.models.policy import Policy
from skillpress.models.policy.scratch import build_scratch_policy

NUMBERS = {str(number): number for number in range(50)}
ACTIONS = ("up", "down", "stop")


def tiny_policy(seed: int = 0, stop: tuple[str, ...] = ("stop",), response_words: int = 16) -> Policy:
    """Two layers of width 16 over fifty numbers and three actions."""
    vocabulary = ScratchVocabulary((*NUMBERS, *ACTIONS), stop, NUMBERS, state_words=12)
    return build_scratch_policy(vocabulary, 16, 2, 2, response_words, seed)
