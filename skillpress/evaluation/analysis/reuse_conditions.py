"""Four conditions under which a segmentation cost chooses reuse (docs/critical_experiment.md).

They are judged before any training, by how the wins of a start policy differ (``choice``). The wins of
training tasks cannot show whether reused phrases transfer to new tasks.

A condition holds or fails if its figure's whole 95% interval says so; otherwise it is undecided. So is a
figure of fewer than :data:`FEWEST` tasks, whatever its interval. Several start policies are the trials of
their figures; of a single one the tasks are, and the verdict is about this policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from skillpress.core.intervals import ROUGH, Interval, critical_value, wilson
from skillpress.evaluation.analysis.choice import CORRELATION, DEVIATION, Choice, Ways, within

DIFFER, INDIFFERENT, LENGTH = 0.5, 0.01, 0.7
"""The thresholds of conditions 1 to 3: half of the tasks; a hundredth of the reward of a success, below which
no sign is predicted either; and the correlation from which length explains half of the variance.
"""
FEWEST = ROUGH
"""Fewer tasks than these decide nothing."""
SHARE = Interval(0.0, 1.0)


@dataclass(frozen=True)
class Figure:
    """The figure by which a condition is judged."""

    mean: float
    """The mean over start policies, or the figure of the only one."""
    interval: Interval | None
    """95%, over start policies (Student), or over the tasks of the only one; None where it has too few."""
    tasks: int
    """Number of tasks, over all policies, that contribute to the figure."""

    def above(self, threshold: float) -> bool | None:
        """Whether the figure is more than the threshold; None if that is undecided."""
        if self.interval is None or self.tasks < FEWEST:
            return None
        if self.interval.low > threshold:
            return True
        return False if self.interval.high <= threshold else None

    def in_words(self, number: str) -> str:
        """The figure with its interval and tasks, each number in this format: ``+0.12 (-0.03 to +0.27; 83
        tasks)``."""
        tasks = f"{self.tasks} task{'' if self.tasks == 1 else 's'}"
        if self.interval is None:
            return f"{self.mean:{number}} ({tasks})"
        return (
            f"{self.mean:{number}} ({self.interval.low:{number}} to {self.interval.high:{number}}; {tasks})"
        )


@dataclass(frozen=True)
class Conditions:
    """Whether the conditions hold, over start policies of one benchmark."""

    policies: int
    tasks: int
    """Number of tasks that all policies together played."""
    won_twice: int
    differ: Figure | None
    """1, there is a choice: share of the tasks won twice whose wins cost differently; above ``DIFFER``.
    None if no task was won twice."""
    worth: Figure | None
    """2, it is worth something: the deviation of the penalty within a task, as a share of the reward of a
    success; above ``INDIFFERENT``. None if no task was won twice."""
    length: Figure | None
    """3, it is not length: correlation of segments with length; below ``LENGTH``. None if no wins differ."""
    others: Figure | None
    """4, it is reuse: correlation with the segments by other tasks' phrases; above 0. None if no wins
    differ."""
    ways: Ways | None = None
    """Over all policies; None if a record has none."""

    @property
    def held(self) -> dict[int, bool | None]:
        """Whether each condition holds; None if that is undecided."""
        longer = None if self.length is None else self.length.above(LENGTH)
        return {
            1: None if self.differ is None else self.differ.above(DIFFER),
            2: None if self.worth is None else self.worth.above(INDIFFERENT),
            3: None if longer is None else not longer,
            4: None if self.others is None else self.others.above(0.0),
        }

    @property
    def verdict(self) -> str:
        """``yes``; ``no`` and the numbers of the conditions that fail; or ``undecided`` and theirs."""
        for word, answer in (("no", False), ("undecided", None)):
            if numbers := [str(number) for number, holds in self.held.items() if holds is answer]:
                return f"{word}: {', '.join(numbers)}"
        return "yes"


def conditions(found: Sequence[Choice]) -> Conditions:
    """The conditions over one or more start policies of a benchmark."""
    twice, differ = sum(one.won_twice for one in found), sum(one.differ for one in found)
    return Conditions(
        policies=len(found),
        tasks=sum(one.tasks for one in found),
        won_twice=twice,
        differ=_figure(found, _share_that_differs, twice, SHARE),
        worth=_figure(found, _worth, twice, DEVIATION),
        length=_figure(found, lambda one: (one.of_length, one.of_length_interval), differ, CORRELATION),
        others=_figure(found, lambda one: (one.of_others, one.of_others_interval), differ, CORRELATION),
        ways=_together([one.ways for one in found]),
    )


def _together(found: Sequence[Ways | None]) -> Ways | None:
    known = [(one.several, one.equal_length, one.differ) for one in found if one is not None]
    return Ways(*map(sum, zip(*known, strict=True))) if known and len(known) == len(found) else None


def _share_that_differs(one: Choice) -> tuple[float | None, Interval | None]:
    if not one.won_twice:
        return None, None
    share = one.differ / one.won_twice
    return share, wilson(share, one.won_twice)


def _worth(one: Choice) -> tuple[float | None, Interval | None]:
    if one.deviation is None:
        return None, None
    ends, cost = one.deviation_interval, one.per_segment
    return one.deviation * cost, None if ends is None else Interval(ends.low * cost, ends.high * cost)


def _figure(
    found: Sequence[Choice],
    of_one: Callable[[Choice], tuple[float | None, Interval | None]],
    tasks: int,
    possible: Interval,
) -> Figure | None:
    """The mean over start policies with its interval; None if no policy has the figure.

    Args:
        of_one: the figure of a policy, and its interval over tasks.
        possible: the lowest and the highest value of the figure.
    """
    known = [(value, ends) for value, ends in map(of_one, found) if value is not None]
    if not known:
        return None
    values = [value for value, _ in known]
    if len(values) == 1:
        return Figure(values[0], known[0][1], tasks)
    middle, half = mean(values), critical_value(len(values)) * stdev(values) / sqrt(len(values))
    return Figure(middle, within(possible, middle, half), tasks)
