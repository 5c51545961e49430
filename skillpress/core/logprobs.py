"""Log-probabilities of sampled tokens: one array from the engine that sampled them to the loss.

They are float32: so engines compute them, files keep them and losses read them, and nothing has to convert
them on the way. An array takes a fraction of the memory of a tuple of numbers.
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
"""Those of a response without tokens."""
NO_LOGPROBS.setflags(write=False)


def as_logprobs(values: Sequence[float] | Logprobs) -> Logprobs:
    """The values as they are where they are such an array, else as a new one."""
    return np.asarray(values, np.float32)


class EqualByValue:
    """A dataclass with arrays among its fields: two are equal where all that is compared has equal values.

    Decorate with ``eq=False``: the comparison that ``dataclass`` writes asks an array for one truth value.
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
