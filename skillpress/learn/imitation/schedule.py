"""The learning rate of imitation: up in a line over the first updates, then down in a line to nothing.

How many updates there will be is known when the demonstrations are made. Where they are few, the warm-up is a
share of them: fifty updates of twenty would never come near the rate that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.learn.imitation.parameters import ImitationParameters

MOST = 10
"""At most one update in ten warms up, so that the largest rate is at least 0.9 of the one asked for."""


@dataclass(frozen=True)
class Schedule:
    """What ``imitation.learning_rate`` is multiplied by in each update."""

    updates: int
    """Number of all updates."""
    warmup: int
    """Number of updates that warm up. The last of them has the largest rate."""

    @classmethod
    def of(cls, parameters: ImitationParameters, updates: int) -> Schedule:
        """The schedule of so many updates."""
        return cls(updates, max(1, min(parameters.warmup_updates, updates // MOST)))

    def factor(self, done: int) -> float:
        """The factor of the update that follows ``done`` others."""
        return min(1.0, (done + 1) / self.warmup) * (1 - done / self.updates)

    @property
    def peak(self) -> float:
        """The largest factor."""
        return self.factor(self.warmup - 1)
