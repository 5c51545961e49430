"""The global success buffer 𝒢: recent successes that steady the dictionary (section 3.7).

A single batch may hold few successes. The dictionary of a step is therefore fitted to the buffer
*and* the step's own successes; only afterwards do these enter the buffer, so none counts twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

Skills = tuple[str, ...]


class SuccessBuffer:
    """The skill sequences of the last ``capacity`` successes, first in, first out.

    A batch may hold more successes than the capacity. Its dictionary is still fitted to all of them
    (``corpus`` drops nothing); of what ``push`` is given, the last ``capacity`` sequences stay and
    everything older is gone. Capacity 0 is no buffer: every dictionary sees its own batch alone.
    """

    def __init__(self, capacity: int, sequences: Iterable[Sequence[str]] = ()) -> None:
        """``sequences`` is what ``state`` gave, oldest first.

        Raises:
            ValueError: the capacity is negative, or smaller than the number of sequences.
        """
        if capacity < 0:
            raise ValueError(f"the buffer's capacity is {capacity}; it must not be negative")
        self.capacity = capacity
        restored = [tuple(sequence) for sequence in sequences]
        if len(restored) > capacity:
            raise ValueError(f"{len(restored)} sequences do not fit a buffer of {capacity}")
        self._sequences: deque[Skills] = deque(restored, maxlen=capacity)

    def __len__(self) -> int:
        return len(self._sequences)

    def corpus(self, batch: Iterable[Sequence[str]]) -> list[Skills]:
        """Buffer ∪ batch, each trajectory's sequence once, oldest first; the buffer stays as it is."""
        return [*self._sequences, *(tuple(sequence) for sequence in batch)]

    def push(self, batch: Iterable[Sequence[str]]) -> None:
        """Remember a batch's successes, forgetting the oldest beyond the capacity."""
        self._sequences.extend(tuple(sequence) for sequence in batch)

    def state(self) -> list[list[str]]:
        """The sequences, oldest first, for a checkpoint: ``SuccessBuffer(capacity, state)`` goes on."""
        return [list(sequence) for sequence in self._sequences]
