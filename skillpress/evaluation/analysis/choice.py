"""What a penalty on segments can choose from: do the wins of one task differ in their penalty?

GRPO compares the episodes of a task. So a segmentation cost moves a policy only where a task is won in
several ways that cost differently. It is more than a length penalty only where the shorter win is not the
cheaper one. And it rewards reuse only if a win that is cheap is still cheap under a dictionary to which this
task's own wins did not contribute; otherwise it rewards what a task repeats.

The dictionaries are fitted as training fits them without a buffer: to the wins of a batch of tasks.
``reuse_conditions`` judges what is found here.

All figures are within tasks, so tasks are the trials. The intervals leave out one task at a time (jackknife;
Efron and Stein 1981): each figure is a function of sums over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.intervals import Interval, critical_value
from skillpress.core.seeds import derive
from skillpress.core.sequence_files import scan_sequences
from skillpress.core.trajectory import Skills
from skillpress.skills.fit import fit_as

if TYPE_CHECKING:
    from skillpress.skills.parameters import SkillParameters

Floats = NDArray[np.float64]

DEVIATION, CORRELATION = Interval(0.0, inf), Interval(-1.0, 1.0)
"""The values that a figure can have."""


@dataclass(frozen=True)
class Ways:
    """Tasks that a policy wins in more than one way."""

    several: int
    """Tasks with two wins of different skills, or of the same skills in another order."""
    equal_length: int
    """Tasks of these with two such wins of equal length."""
    differ: int
    """Tasks of these whose wins of equal length need different numbers of segments. A segmentation cost
    tells these wins apart; a penalty on length cannot."""


@dataclass(frozen=True)
class Choice:
    """How the wins of a policy differ within tasks.

    The intervals are over the tasks won twice, for this policy. They are None for fewer than two tasks, and
    in records from before they were measured.
    """

    tasks: int
    """Tasks that were played."""
    won_twice: int
    """Tasks with two wins or more."""
    differ: int
    """Tasks of these whose wins need different numbers of segments."""
    deviation: float | None
    """Standard deviation of the segments of a task's wins, pooled over the tasks won twice; None without
    such tasks."""
    of_length: float | None
    """Correlation, within tasks, of a win's segments with its length, in [-1, 1]. Near 1, a penalty on length
    would prefer the same wins; below 0, the opposite. None if no task's wins differ."""
    of_others: float | None
    """Correlation, within tasks, of a win's segments with its segments under a dictionary of the batch's
    other tasks, in [-1, 1]. Near 1, what is cheap is what other tasks use too. None if no task's wins
    differ."""
    per_segment: float
    """What a segment costs, as a share of the reward of a success: λ / (T · R)."""
    deviation_interval: Interval | None = None
    of_length_interval: Interval | None = None
    of_others_interval: Interval | None = None
    ways: Ways | None = None
    """None in records from before they were counted."""


def choice(
    wins: Mapping[str, Sequence[Skills]],
    alphabet: Sequence[str],
    skills: SkillParameters,
    tasks_per_batch: int,
    per_segment: float,
    seed: int,
) -> Choice:
    """What the segmentation cost can choose from.

    Args:
        wins: the skill sequences of each task's wins, empty for a task that was never won.
        alphabet: Σ.
        skills: how dictionaries are fitted.
        tasks_per_batch: the number of tasks that share a dictionary.
        per_segment: λ / (T · R).
        seed: of the order in which tasks are put into batches.
    """
    found, ways = [], []
    for batch in _batches([task for task, won in wins.items() if won], tasks_per_batch, seed):
        whole = fit_as(skills, [win for task in batch for win in wins[task]], alphabet, seed)
        for task in batch:
            if len(mine := wins[task]) < 2:
                continue
            rest = [win for other in batch if other != task for win in wins[other]]
            elsewhere = fit_as(skills, rest, alphabet, seed).costs(mine) if rest else list(map(len, mine))
            found.append(_sums(whole.costs(mine), list(map(len, mine)), elsewhere))
            ways.append(_ways(mine, whole.costs(mine)))
    sums = np.array(found, np.float64).reshape(-1, 6)
    differ = int(np.count_nonzero(sums[:, SEGMENTS]))
    of_length, of_others = (_agreement(sums.sum(axis=0), other) for other in (LENGTH, OTHERS))
    return Choice(
        tasks=len(wins),
        won_twice=len(sums),
        differ=differ,
        deviation=float(_deviation(sums.sum(axis=0))) if len(sums) else None,
        of_length=float(of_length) if differ else None,
        of_others=float(of_others) if differ else None,
        per_segment=per_segment,
        deviation_interval=_jackknife(sums, _deviation, len(sums), DEVIATION),
        of_length_interval=_jackknife(sums, lambda each: _agreement(each, LENGTH), differ, CORRELATION),
        of_others_interval=_jackknife(sums, lambda each: _agreement(each, OTHERS), differ, CORRELATION),
        ways=Ways(*np.array(ways, np.int64).reshape(-1, 3).sum(axis=0).tolist()),
    )


def _ways(wins: Sequence[Skills], segments: Sequence[int]) -> tuple[bool, bool, bool]:
    """For each field of :class:`Ways`, whether the task counts."""
    by_length: dict[int, dict[Skills, int]] = {}
    for win, cost in zip(wins, segments, strict=True):
        by_length.setdefault(len(win), {})[win] = cost
    equal = [costs for costs in by_length.values() if len(costs) > 1]
    return len(set(wins)) > 1, bool(equal), any(len(set(costs.values())) > 1 for costs in equal)


def read_wins(path: Path) -> dict[str, list[Skills]]:
    """The skill sequences of each task's wins, in the order of the file; empty for a task that was never won.

    Raises:
        StorageError: the file is missing, damaged or another.
    """
    rows = scan_sequences(path).select("task_id", "won", "skills").collect()
    found: dict[str, list[Skills]] = {task: [] for task in rows["task_id"].unique(maintain_order=True)}
    for task, skills in rows.filter(pl.col("won")).select("task_id", "skills").iter_rows():
        found[task].append(tuple(skills))
    return found


def _batches(tasks: list[str], size: int, seed: int) -> Iterator[list[str]]:
    Random(derive(seed, "choice")).shuffle(tasks)
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]


FREE, SEGMENTS, LENGTH, OTHERS = range(4)
"""A task's sums: wins less one; the squared deviations of its wins' segments, of their length, and of their
segments by other tasks' phrases. Behind them are the products with the segments' deviations."""
PRODUCT = {LENGTH: 4, OTHERS: 5}


def _sums(segments: Sequence[int], length: Sequence[int], others: Sequence[int]) -> list[float]:
    mine, long, elsewhere = (np.array(each) - np.mean(each) for each in (segments, length, others))
    products = (mine @ mine, long @ long, elsewhere @ elsewhere, mine @ long, mine @ elsewhere)
    return [len(segments) - 1, *map(float, products)]


def _deviation(sums: Floats) -> Floats:
    """[...] the pooled deviation of segments, from sums [..., 6]."""
    found: Floats = np.sqrt(sums[..., SEGMENTS] / sums[..., FREE])
    return found


def _agreement(sums: Floats, other: int) -> Floats:
    """[...] the correlation of the segments with another figure, from sums [..., 6]; 0 for a constant."""
    size = np.sqrt(sums[..., SEGMENTS] * sums[..., other])
    found: Floats = sums[..., PRODUCT[other]] / np.where(size > 0, size, 1.0)
    return np.clip(found, -1.0, 1.0)


def _jackknife(
    sums: Floats, figure: Callable[[Floats], Floats], tasks: int, possible: Interval
) -> Interval | None:
    """The interval of a figure of [tasks, 6] sums over draws of tasks; None for fewer than two.

    Args:
        figure: from sums [..., 6] to its values [...].
        tasks: that say something about the figure.
        possible: the lowest and the highest value of the figure.
    """
    if tasks < 2:
        return None
    whole = sums.sum(axis=0)
    without = figure(whole - sums)
    error = sqrt((len(sums) - 1) / len(sums) * float(((without - without.mean()) ** 2).sum()))
    return within(possible, float(figure(whole)), critical_value(tasks) * error)


def within(possible: Interval, middle: float, half: float) -> Interval:
    """``middle`` ± ``half``, as far as a figure can have these values."""
    return Interval(max(possible.low, middle - half), min(possible.high, middle + half))
