"""Which sequences of tokens begin other sequences.

All sequences are sorted together as bytes. Behind each sequence come first those that it begins, so one pass
with a stack finds the beginnings of all of them, and the comparisons run at the speed of memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpress.core.trajectory import TokenIds


@dataclass(frozen=True)
class Beginnings:
    """The sequences that begin some others, as chains from long to short. -1 ends a chain."""

    longest: Sequence[int]
    """[others] the longest sequence that each begins with, or is equal to; the last one of several equal."""
    below: Sequence[int]
    """[sequences] the next one that each begins with: an equal one further ahead, else a shorter one."""

    @classmethod
    def of(cls, sequences: Sequence[TokenIds], others: Sequence[TokenIds]) -> Beginnings:
        """Search; n sequences take about n log n comparisons of bytes."""
        texts, longest, below = [*map(_bytes, sequences)], [-1] * len(others), [-1] * len(sequences)
        entries = [(text, False, row) for row, text in enumerate(texts)]
        entries += [(_bytes(other), True, row) for row, other in enumerate(others)]
        top = -1
        for text, asks, row in sorted(entries):  # a sequence comes before an equal one that asks
            while top >= 0 and not text.startswith(texts[top]):
                top = below[top]
            if asks:
                longest[row] = top
            else:
                below[row], top = top, row
        return cls(longest, below)

    def __getitem__(self, other: int) -> Iterator[int]:
        """The sequences that this one begins with, the longest first."""
        found = self.longest[other]
        while found >= 0:
            yield found
            found = self.below[found]


def _bytes(tokens: TokenIds) -> bytes:
    return array("I", tokens).tobytes()
