"""The global success buffer 𝒢: recent successes that steady the dictionary (section 3.7).

A single batch may hold few successes, so a step's dictionary is fitted to those of earlier batches as well.
``step_corpus.py`` decides which of them count beside a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Skills = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Success:
    """A success as a dictionary sees it."""

    skills: Skills
    """s = φ(τ)."""
    task: str
    """The name of its task."""
    dictionary: str = ""
    """The name of the dictionary that it belongs to (``skills.dictionaries``)."""


class SuccessBuffer:
    """The last ``capacity`` successes, first in, first out.

    A batch may hold more successes than the capacity. Then ``push`` keeps the last ``capacity`` successes and
    drops everything older. A capacity of 0 switches the buffer off.
    """

    def __init__(self, capacity: int) -> None:
        """An empty buffer."""
        if capacity < 0:
            raise ValueError(f"the buffer's capacity is {capacity}; it must not be negative")
        self.capacity = capacity
        self._successes: deque[Success] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._successes)

    @property
    def successes(self) -> list[Success]:
        """The successes in the buffer, oldest first."""
        return list(self._successes)

    def push(self, batch: Iterable[Success]) -> None:
        """Add a batch's successes and drop the oldest ones beyond the capacity."""
        self._successes.extend(batch)

    def state_dict(self) -> dict[str, Any]:
        """The successes for a checkpoint, oldest first, as JSON values."""
        return successes_state(self._successes)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the successes that ``state_dict`` returned.

        Raises:
            ValueError: there are more successes than the capacity, or the state lacks their tasks.
        """
        restored = successes_of(state)
        if len(restored) > self.capacity:
            raise ValueError(f"{len(restored)} successes do not fit a buffer of {self.capacity}")
        self._successes = deque(restored, maxlen=self.capacity)


def successes_state(successes: Iterable[Success]) -> dict[str, Any]:
    """Successes as JSON values, in their order."""
    return {"successes": [[list(each.skills), each.task, each.dictionary] for each in successes]}


def successes_of(state: Mapping[str, Any]) -> list[Success]:
    """The successes that :func:`successes_state` wrote.

    Raises:
        ValueError: the state is from a version that did not store tasks, or is damaged.
    """
    if "successes" not in state:
        raise ValueError(
            f"the state has {', '.join(map(repr, state)) or 'nothing'} and no 'successes': an earlier "
            "version of skillpress wrote it without tasks; start this training from the beginning"
        )
    try:
        return [
            Success(tuple(map(str, skills)), str(task), str(name))
            for skills, task, name in state["successes"]
        ]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the state's 'successes' are damaged ({error}); start from the beginning"
        ) from error
