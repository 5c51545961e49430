"""The learning rate of imitation: a linear rise over the first updates, then a linear fall to 0.

The number of updates is known when the demonstrations are made. If there are few updates, the warm-up is a
share of them: with a warm-up of fifty, twenty updates would never come near the chosen rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.learn.imitation.parameters import ImitationParameters

MOST = 10
"""At most one update in ten warms up, so the largest rate is at least 0.9 of the chosen one."""


@dataclass(frozen=True)
class Schedule:
    """The factor of ``imitation.learning_rate`` in each update."""

    updates: int
    """Number of all updates."""
    warmup: int
    """Number of updates that warm up. The last of them has the largest rate."""

    @classmethod
    def of(cls, parameters: ImitationParameters, updates: int) -> Schedule:
        """The schedule for this number of updates."""
        return cls(updates, max(1, min(parameters.warmup_updates, updates // MOST)))

    def factor(self, done: int) -> float:
        """The factor of the update that follows ``done`` others."""
        return min(1.0, (done + 1) / self.warmup) * (1 - done / self.updates)

    @property
    def peak(self) -> float:
        """The largest factor."""
        return self.factor(self.warmup - 1)
