"""Log-probabilities of sampled tokens: one array from the engine that sampled them to the loss.

They are float32 in engines, files and losses, so nothing converts them on the way. An array takes a fraction
of the memory of a tuple of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Logprobs = NDArray[np.float32]
"""[tokens] in nats."""
NO_LOGPROBS: Logprobs = np.zeros(0, np.float32)
"""The log-probabilities of a response without tokens."""
NO_LOGPROBS.setflags(write=False)


def as_logprobs(values: Sequence[float] | Logprobs) -> Logprobs:
    """The values as an array; an array of this type is returned unchanged."""
    return np.asarray(values, np.float32)


class EqualByValue:
    """A dataclass with arrays among its fields: two are equal if all compared fields have equal values.

    Decorate with ``eq=False``: the comparison that ``dataclass`` writes would need one truth value per array.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = [each.name for each in fields(self) if each.compare]  # type: ignore[arg-type]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in compared)

    __hash__ = None  # type: ignore[assignment]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
