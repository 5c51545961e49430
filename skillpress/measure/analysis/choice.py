"""What a penalty on segments has to choose from: do the wins of one task differ in what they would pay?

GRPO compares the episodes of a task. So a segmentation cost moves a policy only where a task is won in
several ways that cost differently. It is more than a length penalty only where the shorter win is not the
cheaper one. And it rewards reuse only if a win that is cheap is still cheap under a dictionary to which this
task's own wins did not contribute; otherwise it rewards what a task repeats.

The dictionaries are fitted as training fits them without a buffer: to the wins of a batch of tasks.
``reuse_conditions`` judges what is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.seeds import derive
from skillpress.core.sequence_files import scan_sequences
from skillpress.core.trajectory import Skills
from skillpress.skills.fit import fit_as

if TYPE_CHECKING:
    from skillpress.skills.parameters import SkillParameters

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """What the wins of a policy differ in, within tasks."""

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
    """Reward that a segment costs, λ/T; a success is worth 10."""


def choice(
    wins: Mapping[str, Sequence[Skills]],
    alphabet: Sequence[str],
    skills: SkillParameters,
    tasks_per_batch: int,
    per_segment: float,
    seed: int,
) -> Choice:
    """What the segmentation cost has to choose from.

    Args:
        wins: task to the skill sequences of its wins, empty for a task that was never won.
        alphabet: Σ.
        skills: how dictionaries are fitted.
        tasks_per_batch: as many tasks share a dictionary.
        per_segment: λ/T.
        seed: of the order in which tasks are put into batches.
    """
    own, others, lengths, groups = [], [], [], []
    for batch in _batches([task for task, won in wins.items() if won], tasks_per_batch, seed):
        whole = fit_as(skills, [win for task in batch for win in wins[task]], alphabet, seed)
        for task in batch:
            if len(mine := wins[task]) < 2:
                continue
            rest = [win for other in batch if other != task for win in wins[other]]
            own.append(whole.costs(mine))
            others.append(fit_as(skills, rest, alphabet, seed).costs(mine) if rest else list(map(len, mine)))
            lengths.append([len(win) for win in mine])
            groups.append(len(mine))
    segments, elsewhere, length = map(_within, (own, others, lengths))
    free = sum(groups) - len(groups)
    return Choice(
        tasks=len(wins),
        won_twice=len(groups),
        differ=sum(len(set(costs)) > 1 for costs in own),
        deviation=float(np.sqrt((segments**2).sum() / free)) if free else None,
        of_length=_agreement(segments, length),
        of_others=_agreement(segments, elsewhere),
        per_segment=per_segment,
    )


def read_wins(path: Path) -> dict[str, list[Skills]]:
    """Task to the skill sequences of its wins, in the order of a file of sequences; empty if never won.

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


def _within(groups: Sequence[Sequence[int]]) -> Floats:
    """All values, each less the mean of its group."""
    return np.concatenate([np.empty(0), *(np.array(each) - np.mean(each) for each in groups)])


def _agreement(segments: Floats, other: Floats) -> float | None:
    """The correlation of two deviations from group means; None if no segments deviate, 0 if nothing else."""
    if not segments.any():
        return None
    size = float(np.sqrt((segments**2).sum() * (other**2).sum()))
    return float(segments @ other) / size if size else 0.0
