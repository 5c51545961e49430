"""One number per training seed and task, and what a mean over them counts as a task.

Test tasks are *crossed* with seeds where every training is tested on the same games (ALFWorld's 274),
*nested* in them where each seed draws its own (Countdown), and in between where each draws some of the
same games. The mean is that of the seeds' means. Whatever the pattern, a task that several seeds played
is one task: its scores stand in one column, and what follows counts columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.intervals import effective_tasks


@dataclass(frozen=True)
class Scores:
    """Success rates of a policy per task, or differences of two policies'."""

    values: NDArray[np.float64]
    """A row per training seed, a column per task; NaN where the seed's tests do not hold the task."""

    @classmethod
    def of(cls, seeds: Sequence[pl.DataFrame]) -> Scores:
        """From a frame per seed with ``task_id`` and ``score``, each task once."""
        names = pl.concat(frame.select("task_id") for frame in seeds).unique().sort("task_id")
        columns = names.with_row_index("column")
        values = np.full((len(seeds), names.height), np.nan)
        for row, frame in zip(values, seeds, strict=True):
            found = frame.join(columns, on="task_id")
            row[found["column"].to_numpy()] = found["score"].to_numpy()
        return cls(values)

    @property
    def seeds(self) -> int:
        """How many trainings were tested."""
        return int(self.values.shape[0])

    @property
    def tasks(self) -> int:
        """How many different tasks they were tested on."""
        return int(self.values.shape[1])

    def tasks_per_seed(self) -> NDArray[np.int64]:
        """How many each seed played."""
        return np.asarray((~np.isnan(self.values)).sum(axis=1))

    def shared_tasks(self) -> int:
        """How many tasks more than one seed played."""
        return int(((~np.isnan(self.values)).sum(axis=0) > 1).sum())

    def seed_means(self) -> NDArray[np.float64]:
        """Each seed's mean over its tasks."""
        return np.asarray(np.nanmean(self.values, axis=1))

    def mean(self) -> float:
        """The mean of the seeds' means."""
        return float(self.seed_means().mean())

    def deviations(self) -> NDArray[np.float64]:
        """Every score less its seed's mean; 0 where the seed did not play the task."""
        return np.asarray(np.nan_to_num(self.values - self.seed_means()[:, None], nan=0.0))

    def per_task(self) -> NDArray[np.float64]:
        """One value per task, whose mean is :meth:`mean` and whose scatter is that of the tasks alone.

        Crossed, it is the task's mean over the seeds; nested, the task's score with its seed's mean
        moved to the common one. Rounded, so that equal shares tie exactly.
        """
        shares = self.deviations() / (self.seeds * self.tasks_per_seed()[:, None])
        return np.asarray((self.mean() + self.tasks * shares.sum(axis=0)).round(12))

    def effective_tasks(self) -> float:
        """As many equally weighted tasks as say as much."""
        played = ~np.isnan(self.values)
        return effective_tasks((played / (self.seeds * self.tasks_per_seed()[:, None])).sum(axis=0))
