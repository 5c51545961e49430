"""Which sequences of tokens begin other sequences, and so which call of a model continues which.

All sequences are sorted together as bytes. The sequences that begin with another directly follow it, so one
pass with a stack finds the beginnings of all of them, and the comparisons run at the speed of memory.
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
    """[sequences] the next one that each begins with: an equal one that comes earlier, else a shorter one."""

    @classmethod
    def of(cls, sequences: Sequence[TokenIds], others: Sequence[TokenIds]) -> Beginnings:
        """Find them with about n log n comparisons of bytes for n sequences."""
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


@dataclass(frozen=True)
class Continued:
    """The earlier call whose conversation a call continues."""

    call: int
    """Place of the earlier call in the episode."""
    exactly: bool
    """Whether the prompt repeats its response token by token; otherwise it is changed or left out."""


def conversations(calls: Sequence[tuple[TokenIds, TokenIds]]) -> list[Continued | None]:
    """Which earlier call each call of an episode continues, None if it begins a conversation.

    A call continues the one with the longest prompt that its own prompt begins with; of equal prompts, one
    whose response comes back exactly, else the last. The list is empty if no call continues another, or if
    fewer than two calls begin a conversation. Calls without tokens do not count.

    Args:
        calls: prompt and response of each call, in the order of time.
    """
    prompts = [prompt for prompt, _ in calls]
    known = Beginnings.of(prompts, prompts)
    found = [_continued(calls, row, known[row]) for row in range(len(calls))]
    begin = sum(one is None for one, prompt in zip(found, prompts, strict=True) if prompt)
    return found if begin > 1 and any(found) else []


def _continued(
    calls: Sequence[tuple[TokenIds, TokenIds]], row: int, earlier: Iterator[int]
) -> Continued | None:
    prompt, _ = calls[row]
    size, last = 0, None
    for other in earlier:
        before, response = calls[other]
        if other >= row or len(before) == len(prompt):
            continue
        if len(before) < max(size, 1):
            break
        if prompt[len(before) : len(before) + len(response)] == response:
            return Continued(other, True)
        size, last = len(before), other if last is None else last
    return None if last is None else Continued(last, False)
