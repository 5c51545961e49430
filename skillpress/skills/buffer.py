"""The global success buffer 𝒢: recent successes that steady the dictionary (section 3.7).

A single batch may hold few successes, so a step's dictionary is fitted to those of earlier batches as well.
``step_corpus.py`` decides which of them count beside a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Skills = tuple[str, ...]


class SuccessBuffer:
    """The skill sequences of the last ``capacity`` successes, first in, first out.

    A batch may hold more successes than the capacity. Then ``push`` keeps the last ``capacity`` sequences and
    drops everything older. A capacity of 0 switches the buffer off.
    """

    def __init__(self, capacity: int) -> None:
        """An empty buffer."""
        if capacity < 0:
            raise ValueError(f"the buffer's capacity is {capacity}; it must not be negative")
        self.capacity = capacity
        self._sequences: deque[Skills] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._sequences)

    @property
    def sequences(self) -> list[Skills]:
        """The sequences in the buffer, oldest first."""
        return list(self._sequences)

    def push(self, batch: Iterable[Sequence[str]]) -> None:
        """Add a batch's successes and drop the oldest sequences beyond the capacity."""
        self._sequences.extend(tuple(sequence) for sequence in batch)

    def state_dict(self) -> dict[str, Any]:
        """The sequences for a checkpoint, oldest first, as JSON values."""
        return {"sequences": [list(sequence) for sequence in self._sequences]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the sequences that ``state_dict`` returned.

        Raises:
            ValueError: there are more sequences than the capacity.
        """
        restored = [tuple(sequence) for sequence in state["sequences"]]
        if len(restored) > self.capacity:
            raise ValueError(f"{len(restored)} sequences do not fit a buffer of {self.capacity}")
        self._sequences = deque(restored, maxlen=self.capacity)
