"""Four conditions under which a segmentation cost chooses reuse (docs/critical_experiment.md).

They are judged by what the wins of a start policy differ in (``choice``), so before any training. Whether
what is reused also transfers to new tasks cannot be read from the wins of training tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from skillpress.core.intervals import critical_value
from skillpress.measure.analysis.choice import Choice

DIFFER, INDIFFERENT, LENGTH = 0.5, 0.1, 0.7
"""What the conditions 1 to 3 ask for: half of the tasks; a hundredth of a success, below which no sign is
predicted either; and the correlation from which length explains half of the variance."""


@dataclass(frozen=True)
class OverSeeds:
    """A mean over start policies and its 95% interval (Student); no interval from one."""

    mean: float
    low: float | None
    high: float | None

    def in_words(self) -> str:
        """The mean, such as ``+0.12 (-0.03 to +0.27)``."""
        ends = "" if self.low is None or self.high is None else f" ({self.low:+.2f} to {self.high:+.2f})"
        return f"{self.mean:+.2f}{ends}"


@dataclass(frozen=True)
class Conditions:
    """Whether the conditions hold, over start policies of one benchmark."""

    policies: int
    tasks: int
    """Played by all policies together."""
    won_twice: int
    differ: float | None
    """1, there is a choice: share of the tasks won twice whose wins cost differently; at least ``DIFFER``."""
    reward: float | None
    """2, it is worth something: the deviation of the penalty within a task; at least ``INDIFFERENT``."""
    length: OverSeeds | None
    """3, it is not length: correlation of segments with length; below ``LENGTH`` with its interval."""
    others: OverSeeds | None
    """4, it is reuse: correlation with the segments by other tasks' phrases; above 0 with its interval."""

    @property
    def failed(self) -> list[int]:
        """The conditions that do not hold: 3 and 4 by their intervals, or by one policy's figure."""
        if self.differ is None or self.reward is None or self.length is None or self.others is None:
            return [1]
        held = {
            1: self.differ >= DIFFER,
            2: self.reward >= INDIFFERENT,
            3: (self.length.mean if self.length.low is None else self.length.low) < LENGTH,
            4: (self.others.mean if self.others.high is None else self.others.high) > 0,
        }
        return [number for number, holds in held.items() if not holds]

    @property
    def verdict(self) -> str:
        """``yes``; ``no`` and the numbers of the conditions that fail; or ``cannot be told``."""
        if self.failed:
            return f"no: {', '.join(map(str, self.failed))}"
        assert self.length is not None and self.others is not None
        if self.length.high is None or self.others.low is None:
            return "cannot be told"
        return "yes" if self.others.low > 0 and self.length.high < LENGTH else "cannot be told"


def conditions(found: Sequence[Choice]) -> Conditions:
    """The conditions over one or more start policies of a benchmark."""
    twice = sum(one.won_twice for one in found)
    rewards = [one.deviation * one.per_segment for one in found if one.deviation is not None]
    return Conditions(
        policies=len(found),
        tasks=sum(one.tasks for one in found),
        won_twice=twice,
        differ=sum(one.differ for one in found) / twice if twice else None,
        reward=mean(rewards) if rewards else None,
        length=_over_seeds([one.of_length for one in found if one.of_length is not None]),
        others=_over_seeds([one.of_others for one in found if one.of_others is not None]),
    )


def _over_seeds(values: Sequence[float]) -> OverSeeds | None:
    """The mean over start policies. Its interval ends at -1 and 1, as correlations do."""
    if not values:
        return None
    if len(values) == 1:
        return OverSeeds(values[0], low=None, high=None)
    middle, half = mean(values), critical_value(len(values)) * stdev(values) / sqrt(len(values))
    return OverSeeds(middle, low=max(-1.0, middle - half), high=min(1.0, middle + half))
