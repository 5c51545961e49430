"""The space of all texts.

``gymnasium.spaces.Text`` enumerates the allowed characters. For natural text, with its accents, arrows and
emoji, that would be a million characters. The space here needs no list: it contains every text that is short
enough. Random samples consist of ASCII's printable characters, and a flattened text can contain only these.
"""

from __future__ import annotations

from string import printable
from typing import Any

from gymnasium.spaces import Text


class AnyText(Text):
    """Every text of at most ``max_length`` characters, including the empty one."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=printable)

    def contains(self, x: Any) -> bool:
        """Whether the value is a text that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length
